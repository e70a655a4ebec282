#include "format/region_map.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "format/fields.hpp"

namespace kedge::format {
namespace {

void order_regions(RegionMap& map, std::string_view path) {
  const auto& regions = map.regions;
  map.by_name.resize(regions.size());
  std::iota(map.by_name.begin(), map.by_name.end(), std::size_t{0});
  std::sort(map.by_name.begin(), map.by_name.end(),
            [&](std::size_t a, std::size_t b) { return regions[a].spec.name < regions[b].spec.name; });
  const auto twice = std::adjacent_find(map.by_name.begin(), map.by_name.end(), [&](std::size_t a, std::size_t b) {
    return regions[a].spec.name == regions[b].spec.name;
  });
  if (twice != map.by_name.end()) {
    throw_corrupt(path, kedge::compose("two regions have the name '{}'", regions[*twice].spec.name));
  }
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].size_bytes != 0) map.by_offset.push_back(i);
  }
  std::sort(map.by_offset.begin(), map.by_offset.end(),
            [&](std::size_t a, std::size_t b) { return regions[a].offset < regions[b].offset; });
}

// Makes the data extents between two other extents: [begin, end) must start with a region, unless it is empty. `next`
// is the position in by_offset of the first region without an extent; it is advanced.
void divide_into_data_extents(RegionMap& map, std::uint64_t begin, std::uint64_t end, std::size_t& next,
                              std::string_view path) {
  const auto region = [&](std::size_t i) -> StoredRegion& { return map.regions[map.by_offset[i]]; };
  const auto more = [&] { return next < map.by_offset.size() && region(next).offset < end; };
  std::uint64_t at = begin;
  while (more()) {
    if (region(next).offset != at)
      throw_corrupt(path, kedge::compose("region '{}' overlaps other regions", region(next).spec.name));
    DataExtent extent{at, 0, next, 0, map.checksum_count, 0, region(next).size_bytes >= kLargeRegionBytes};
    do {
      StoredRegion& placed = region(next);
      if (placed.offset < at || placed.size_bytes > end - placed.offset) {
        throw_corrupt(path, kedge::compose("region '{}' overlaps other regions", placed.spec.name));
      }
      at = placed.offset + placed.size_bytes;
      ++extent.region_count;
      placed.first_checksum = extent.first_checksum + (extent.is_large ? 0 : extent.region_count);
      ++next;
    } while (!extent.is_large && more() && region(next).size_bytes < kLargeRegionBytes);
    const std::uint64_t extent_end = more() ? region(next).offset : end;
    if (extent_end < at)
      throw_corrupt(path, kedge::compose("region '{}' overlaps other regions", region(next).spec.name));
    at = extent_end;
    extent.length = at - extent.offset;
    extent.checksum_count = extent.is_large ? (extent.length - 1) / kBlockBytes + 1 : 1 + extent.region_count;
    map.checksum_count += extent.checksum_count;
    map.data_extents.push_back(extent);
  }
  if (at != end) throw_corrupt(path, kedge::compose("bytes {} to {} belong to no extent", at, end));
}

}  // namespace

std::ptrdiff_t RegionMap::find_position(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      by_name.begin(), by_name.end(), name,
      [&](std::size_t i, std::string_view wanted) { return std::string_view(regions[i].spec.name) < wanted; });
  if (found == by_name.end() || regions[*found].spec.name != name) return -1;
  return static_cast<std::ptrdiff_t>(*found);
}

RegionMap make_region_map(std::vector<StoredRegion> regions, std::span<const Extent> others, std::uint64_t file_size,
                          std::string_view path) {
  RegionMap map;
  map.regions = std::move(regions);
  order_regions(map, path);
  std::uint64_t at = kSuperblockBytes;
  std::size_t next = 0;
  for (const Extent& other : others) {
    if (other.offset < at) throw_corrupt(path, "extents overlap");
    divide_into_data_extents(map, at, other.offset, next, path);
    at = other.offset + other.length;
  }
  if (at > file_size) throw_corrupt(path, "an extent reaches beyond the end of the file");
  divide_into_data_extents(map, at, file_size, next, path);
  if (next != map.by_offset.size()) {
    throw_corrupt(path,
                  kedge::compose("region '{}' lies outside the file", map.regions[map.by_offset[next]].spec.name));
  }
  return map;
}

}  // namespace kedge::format
