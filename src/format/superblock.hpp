// The first 4096 bytes of a container: its writer, its commit, and the checksums of its structure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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
  CommitHead commit;  ///< with a tag of at most 128 bytes
  LogicalRank logical_rank;
  std::uint64_t file_size = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t index_size = 0;
  std::uint32_t index_crc = 0;  ///< checksum of index_size bytes; the extent's own checksum also covers padding
  std::vector<Extent> extents;  ///< metadata and index, by offset; the index lists data extents
  bool is_sealed = false;
  bool operator==(const Superblock&) const = default;
};

using SuperblockBytes = std::array<std::byte, kSuperblockBytes>;

/// Throws Error{invalid_argument} if tag or extents do not fit.
[[nodiscard]] SuperblockBytes encode_superblock(const Superblock& superblock);

/// Parses a superblock and checks every field. `path` is for the message. Throws Error{corrupt} if it is not a
/// container, not sealed or made by a newer Kedge, or checksum or fields are wrong.
[[nodiscard]] Superblock decode_superblock(std::span<const std::byte> bytes, std::string_view path);

/// Writes the table of extents, at most kTableEntriesMax, which has the same offset in containers and manifests.
void put_extents(std::span<std::byte> bytes, std::span<const Extent> extents);
[[nodiscard]] std::vector<Extent> get_extents(std::span<const std::byte> bytes, std::size_t count);

/// Whether all bytes are zero: the container is being written or was retired.
[[nodiscard]] bool is_unsealed(std::span<const std::byte> bytes) noexcept;

}  // namespace kedge::format
