// The first 4096 bytes of a parity file, and the whole of a set descriptor: who protects whom, and with what.
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

/// One member of a redundancy set: whose container it protects.
struct SetMember {
  LogicalRank logical_rank;
  std::uint32_t crc = 0;  ///< CRC32C of its whole container file
  std::uint64_t size_bytes = 0;
  bool operator==(const SetMember&) const = default;
};

/// A descriptor lies alone in a small file, so that a damaged parity file does not take the set's membership with it;
/// the same bytes with kind parity begin the parity file.
enum class SetFileKind : std::uint32_t { descriptor = 1, parity = 2 };

struct SetDescriptor {
  SetFileKind kind = SetFileKind::descriptor;
  Id128 run_id;
  Id128 commit_id;
  Id128 protection_id;  ///< drawn for each protection: parity of different ones is never combined
  std::uint64_t generation = 0;
  std::uint32_t world_size = 0;  ///< logical ranks of the commit
  Scheme scheme = Scheme::xor_;
  std::uint32_t parities = 1;  ///< rs: members that may be lost, 2 to 4; else 1
  std::uint64_t set_number = 0;
  std::uint32_t position = 0;      ///< of the member that holds this file
  std::vector<SetMember> members;  ///< by position
  std::uint64_t parity_bytes = 0;  ///< kind parity: how many follow these 4096
  std::uint32_t parity_crc = 0;    ///< kind parity: their CRC32C
  bool operator==(const SetDescriptor&) const = default;
};

using SetDescriptorBytes = std::array<std::byte, kSuperblockBytes>;

/// Throws Error{invalid_argument} if there are too many members.
[[nodiscard]] SetDescriptorBytes encode(const SetDescriptor& descriptor);

/// The reverse, with every field checked. `path` is for the message. Throws Error{corrupt}: neither parity nor
/// descriptor, checksum wrong, made by a newer Kedge, or fields that contradict each other.
[[nodiscard]] SetDescriptor decode_set(std::span<const std::byte> bytes, std::string_view path);

}  // namespace kedge::format
