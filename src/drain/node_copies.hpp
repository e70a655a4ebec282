// Copies of nodes' stores on the prefix, below <prefix>/.kedge/<run>/scavenged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "drain/recorded_run.hpp"
#include "fs/file_system.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

[[nodiscard]] std::string scavenge_directory(const RecordedRun& run);

/// Local. A lock in that directory; nothing if another process has it. Where the filesystem has no locks, it is as if
/// the lock were free: the pointer is null.
[[nodiscard]] std::optional<std::unique_ptr<fs::Lock>> lock_if_possible(const start::Environment& environment,
                                                                        const RecordedRun& run, std::string_view name);

/// The name of the lock of the process that copies a node's store.
[[nodiscard]] std::string lock_of(std::string_view node);
/// The name of a copy that is not complete.
[[nodiscard]] std::string partial_of(std::string_view node);

/// The store's name in a node's directory, where a start of the run looks for it.
[[nodiscard]] std::string store_name(const fs::FileSystem& files, const RecordedRun& run);

/// Local. Copies what is newer than the prefix's checkpoint, and outputs that it lacks, from a store. Returns the
/// copied bytes; 0 if there is nothing. Throws Error{busy, no_space, io}.
[[nodiscard]] std::uint64_t copy_store(const start::Environment& environment, const RecordedRun& run,
                                       const std::string& store);

}  // namespace kedge::drain
