// Offsets of a container's regions, and the extents and checksums that cover them; for writer and reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "format/region_spec.hpp"
#include "format/superblock.hpp"

namespace kedge::format {

struct StoredRegion {
  RegionSpec spec;
  std::uint64_t offset = 0;  ///< 0 if the region has no bytes
  std::uint64_t size_bytes = 0;
  std::uint64_t first_checksum = 0;  ///< index of its first block's checksum, or of its only one
};

/// One large region (64 KiB or more) or a run of adjacent small ones, with the zeros up to the next extent. A large
/// region has a checksum for each 4 MiB; a run has one for all of it, followed by one for each region.
struct DataExtent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t first_region = 0;  ///< position in RegionMap::by_offset
  std::uint64_t region_count = 0;
  std::uint64_t first_checksum = 0;
  std::uint64_t checksum_count = 0;
  bool is_large = false;
};

struct RegionMap {
  std::vector<StoredRegion> regions;     ///< all regions, in the order of their addition
  std::vector<std::size_t> by_name;      ///< positions in `regions`
  std::vector<std::size_t> by_offset;    ///< positions in `regions` of those with bytes, by offset
  std::vector<DataExtent> data_extents;  ///< extents, by offset
  std::uint64_t checksum_count = 0;

  /// Position in `regions`, or -1.
  [[nodiscard]] std::ptrdiff_t find_position(std::string_view name) const noexcept;
};

/// Derives the map from the offsets of the regions and of the other extents (sorted). Throws Error{corrupt} with `path`
/// unless they cover [4096, file_size) exactly once.
[[nodiscard]] RegionMap make_region_map(std::vector<StoredRegion> regions, std::span<const Extent> others,
                                        std::uint64_t file_size, std::string_view path);

}  // namespace kedge::format
