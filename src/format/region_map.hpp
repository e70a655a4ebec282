// Where the regions of a container lie and which extents and checksums cover them: common to writer and reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/region_spec.hpp"
#include "format/superblock.hpp"

namespace kedge::format {

struct StoredRegion {
  RegionSpec spec;
  std::uint64_t offset = 0;  ///< from the start of the file; 0 if the region has no bytes
  std::uint64_t size_bytes = 0;
  std::uint64_t first_checksum = 0;  ///< among the index's checksums: of its first block, or of a small region
};

/// One large region (64 KiB or more) or a run of neighbouring small ones, with the zeroed padding up to the next
/// extent. A large one has a checksum for each 4 MiB; a run has one over all of it, followed by one for each region.
struct DataExtent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t first_region = 0;  ///< position in RegionMap::by_offset
  std::uint64_t region_count = 0;
  std::uint64_t first_checksum = 0;
  std::uint64_t checksum_count = 0;
  bool large = false;
};

struct RegionMap {
  std::vector<StoredRegion> regions;     ///< in the order in which they were added
  std::vector<std::size_t> by_name;      ///< positions in `regions`
  std::vector<std::size_t> by_offset;    ///< positions in `regions` of those that have bytes
  std::vector<DataExtent> data_extents;  ///< by offset
  std::uint64_t checksum_count = 0;

  /// Position in `regions`, or -1.
  [[nodiscard]] std::ptrdiff_t position(std::string_view name) const noexcept;
};

/// Derives everything from the places of the regions and of the other extents (sorted). Throws Error{corrupt} with
/// `path` unless all of them together cover [4096, file_size) once: a region overlaps something or leaves a hole.
[[nodiscard]] RegionMap make_region_map(std::vector<StoredRegion> regions, std::span<const Extent> others,
                                        std::uint64_t file_size, std::string_view path);

}  // namespace kedge::format
