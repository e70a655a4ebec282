// The index: a CBOR array [version, regions, extents, checksums] in an opaque dataset, /.kedge/index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/region_map.hpp"

namespace kedge::format {

/// Encodes everything but the checksums, which come last with fixed width. All commits of a structure share this part.
[[nodiscard]] std::vector<std::byte> encode_index_head(const RegionMap& map);

/// Upper bound of an index's size with these regions and numbers of extents and checksums.
[[nodiscard]] std::uint64_t index_size_bound(std::span<const StoredRegion> regions, std::uint64_t extents,
                                             std::uint64_t checksums);

struct Index {
  RegionMap map;
  std::vector<std::uint32_t> checksums;
};

/// Parses an index without trusting it: checks every name, shape, size and offset, also against the other extents of
/// the file (sorted, as in the superblock). Memory use is proportional to the size of `bytes`. Throws Error{corrupt}.
[[nodiscard]] Index decode_index(std::span<const std::byte> bytes, std::span<const Extent> others,
                                 std::uint64_t file_size, std::string_view path);

}  // namespace kedge::format
