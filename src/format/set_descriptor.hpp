// A set descriptor: the members and parameters of a redundancy set. It also forms the first 4096 bytes of a parity
// file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/on_disk.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// A member of a redundancy set and its protected container.
struct SetMember {
  LogicalRank logical_rank;
  std::uint32_t crc = 0;  ///< CRC32C of the container file
  std::uint64_t size_bytes = 0;
  bool operator==(const SetMember&) const = default;
};

/// The descriptor also has a small file of its own, to survive damage of the parity file that begins with it.
enum class SetFileKind : std::uint32_t { descriptor = 1, parity = 2 };

struct SetDescriptor {
  SetFileKind kind = SetFileKind::descriptor;
  Id128 run_id;
  Id128 commit_id;
  Id128 protection_id;  ///< random for each protection: parity is never combined across protections
  std::uint64_t generation = 0;
  std::uint32_t world_size = 0;  ///< number of ranks of the commit
  Scheme scheme = Scheme::xor_;
  std::uint32_t parity_count = 1;  ///< rs: how many members may be lost, 2 to 4; otherwise 1
  std::uint64_t set_number = 0;
  std::uint32_t position = 0;      ///< position of the member that has this file
  std::vector<SetMember> members;  ///< all members, by position
  std::uint64_t parity_bytes = 0;  ///< kind parity: bytes after these 4096
  std::uint32_t parity_crc = 0;    ///< kind parity: CRC32C of those bytes
  bool operator==(const SetDescriptor&) const = default;
};

using SetDescriptorBytes = std::array<std::byte, kSuperblockBytes>;

/// Throws Error{invalid_argument} if there are too many members.
[[nodiscard]] SetDescriptorBytes encode_set_descriptor(const SetDescriptor& descriptor);

/// Parses a descriptor and checks every field. `path` is for the message. Throws Error{corrupt} if it is neither a
/// parity file nor a descriptor, was made by a newer Kedge, or checksum or fields are wrong.
[[nodiscard]] SetDescriptor decode_set_descriptor(std::span<const std::byte> bytes, std::string_view path);

}  // namespace kedge::format
