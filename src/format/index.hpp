// The index: a CBOR array [version, regions, extents, checksums] in an opaque dataset, /.kedge/index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/region_map.hpp"

namespace kedge::format {

/// Everything up to the checksums, which are fixed-width and last: the same for every commit of a structure.
[[nodiscard]] std::vector<std::byte> encode_index_head(const RegionMap& map);

/// The most bytes an index of these regions can take with so many data extents and checksums.
[[nodiscard]] std::uint64_t index_size_bound(std::span<const StoredRegion> regions, std::uint64_t extents,
                                             std::uint64_t checksums);

struct Index {
  RegionMap map;
  std::vector<std::uint32_t> checksums;
};

/// The reverse; nothing is trusted: every name, shape, size and place is checked, also against the other extents of
/// the file (sorted, as in the superblock). Memory stays in proportion to the bytes given. Throws Error{corrupt}.
[[nodiscard]] Index decode_index(std::span<const std::byte> bytes, std::span<const Extent> others,
                                 std::uint64_t file_size, std::string_view path);

}  // namespace kedge::format
