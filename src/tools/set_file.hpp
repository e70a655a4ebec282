// Parity files and set descriptors: their check, and what they say in words and in JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "format/container_reader.hpp"
#include "format/set_descriptor.hpp"
#include "fs/file_system.hpp"

namespace kedge::tools {

/// The member that keeps the file.
[[nodiscard]] inline const format::SetMember& holder(const format::SetDescriptor& set) {
  return set.members.at(set.position);
}

/// Throws Error{corrupt} if the file has another size than `set`, its beginning, says.
void check_set_size(const format::SetDescriptor& set, std::uint64_t file_bytes, const std::string& path);

/// Reads the parity, if `set` has any, and compares it with its checksum; empty if all is well. `on_progress` is
/// called with the bytes checked since the last call, those of the beginning included.
[[nodiscard]] std::vector<format::Damage> verify_set_file(fs::ByteAccess& bytes, const format::SetDescriptor& set,
                                                          const std::function<void(std::uint64_t)>& on_progress);

/// "parity of set 3 (xor), generation 7, rank 2".
[[nodiscard]] std::string set_line(const format::SetDescriptor& set);
/// All that the beginning says, for people; `path` as the user gave it.
[[nodiscard]] std::string set_text(const format::SetDescriptor& set, const std::string& path);
[[nodiscard]] Json set_json(const format::SetDescriptor& set, const std::string& path);

}  // namespace kedge::tools
