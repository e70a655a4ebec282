// The fingerprint of a run: text and files that its results depend on, so that another input does not continue from its
// checkpoints.
#pragma once

#include <optional>
#include <string>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"

namespace kedge::start {

/// Returns the text of Options::fingerprint and, for each of its files, name, size and CRC32C, in one line; empty if
/// neither is given. Throws Error{not_found | io} for a file that cannot be read. Local.
[[nodiscard]] std::string fingerprint_of(fs::FileSystem& file_system, const Options& options);

/// Throws mismatch that names both if `mine` is given, another one was recorded, and `start` does not accept that.
/// Local.
void require_same_fingerprint(const std::optional<std::string>& recorded, const std::string& mine,
                              const std::string& run, StartMode start);

}  // namespace kedge::start
