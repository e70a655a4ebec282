// The first 4096 bytes of a container: who made it, which commit it belongs to, and the checksums of its structure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/on_disk.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// A stretch of the file with one checksum over all of it.
struct Extent {
  ExtentKind kind = ExtentKind::metadata;
  std::uint32_t crc = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool operator==(const Extent&) const = default;
};

struct Superblock {
  CommitHead commit;  ///< its tag has at most 128 bytes
  LogicalRank logical_rank;
  std::uint64_t file_size = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t index_size = 0;
  std::uint32_t index_crc = 0;  ///< of the index_size bytes; the extent's own covers its padding too
  std::vector<Extent> extents;  ///< metadata and index, by offset; the data extents are in the index
  bool sealed = false;
  bool operator==(const Superblock&) const = default;
};

using SuperblockBytes = std::array<std::byte, kSuperblockBytes>;

/// Throws Error{invalid_argument} if tag or extents do not fit.
[[nodiscard]] SuperblockBytes encode(const Superblock& superblock);

/// The reverse, with every field checked. `path` is for the message. Throws Error{corrupt}: not a container, not
/// sealed, checksum wrong, made by a newer Kedge, or fields that contradict each other.
[[nodiscard]] Superblock decode(std::span<const std::byte> bytes, std::string_view path);

/// The table of extents at the end of a container's superblock and of a manifest's head: the same place in both. At
/// most kTableEntriesMax of them.
void put_extents(std::span<std::byte> bytes, std::span<const Extent> extents);
[[nodiscard]] std::vector<Extent> get_extents(std::span<const std::byte> bytes, std::size_t count);

/// True if all bytes are zero: a container that is being written or was retired.
[[nodiscard]] bool is_unsealed(std::span<const std::byte> bytes) noexcept;

}  // namespace kedge::format
