// What a commit costs beside the copy: the index, and the seal.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/index.hpp"
#include "format/superblock.hpp"
#include "require.hpp"

namespace kedge_bench {
namespace {

using namespace kedge::format;

constexpr std::uint64_t kRegionBytes = std::uint64_t{64} << 10U;

std::uint64_t file_size(std::uint64_t regions) { return kSuperblockBytes + regions * kRegionBytes; }

/// So many regions of 64 KiB, one after the other.
RegionMap some_regions(std::uint64_t count) {
  std::vector<StoredRegion> regions;
  for (std::uint64_t i = 0; i < count; ++i) {
    StoredRegion region;
    region.spec = {"fields/block-" + std::to_string(i), kedge::DataType::float64, kedge::Shape{64, 128}, {}, false};
    region.offset = file_size(i);
    region.size_bytes = kRegionBytes;
    regions.push_back(region);
  }
  return make_region_map(std::move(regions), {}, file_size(count), "made up");
}

/// An index with its checksums, as it lies in a file.
std::vector<std::byte> whole_index(const RegionMap& map) {
  std::vector<std::byte> bytes = encode_index_head(map);
  bytes.resize(bytes.size() + 4 * map.checksum_count, std::byte{7});
  return bytes;
}

void index_encode(benchmark::State& state) {
  const RegionMap map = some_regions(static_cast<std::uint64_t>(state.range(0)));
  std::vector<std::byte> head;
  for (auto _ : state) benchmark::DoNotOptimize(head = encode_index_head(map));
  require(whole_index(map).size() <= index_size_bound(map.regions, map.data_extents.size(), map.checksum_count),
          "bound of the index's size");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void index_decode(benchmark::State& state) {
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const RegionMap map = some_regions(count);
  const std::vector<std::byte> bytes = whole_index(map);
  Index index;
  for (auto _ : state) benchmark::DoNotOptimize(index = decode_index(bytes, {}, file_size(count), "made up"));
  require(index.map.regions.size() == count && index.checksums.size() == map.checksum_count, "number of regions");
  for (std::uint64_t i = 0; i < count; ++i) {
    const StoredRegion& found = index.map.regions[i];
    require(found.spec == map.regions[i].spec && found.offset == map.regions[i].offset, "region in the index");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

Superblock some_superblock() {
  Superblock superblock;
  superblock.commit.run_id.bytes.fill(1);
  superblock.commit.id.bytes.fill(2);
  superblock.commit.generation = 4;
  superblock.commit.incarnation = 5;
  superblock.commit.world_size = 100'000;
  superblock.commit.tag = "step-000100";
  superblock.file_size = file_size(1) + 2 * kRegionBytes;
  superblock.index_offset = file_size(1);
  superblock.index_size = kRegionBytes;
  superblock.extents = {{ExtentKind::index, 1, file_size(1), kRegionBytes},
                        {ExtentKind::metadata, 2, file_size(2), kRegionBytes}};
  superblock.is_sealed = true;
  return superblock;
}

void seal(benchmark::State& state) {
  const Superblock superblock = some_superblock();
  SuperblockBytes bytes{};
  for (auto _ : state) {
    bytes = encode_superblock(superblock);
    benchmark::DoNotOptimize(bytes);
  }
  require(decode_superblock(bytes, "made up") == superblock, "superblock");
}

void look_at_seal(benchmark::State& state) {
  const Superblock superblock = some_superblock();
  const SuperblockBytes bytes = encode_superblock(superblock);
  Superblock found;
  for (auto _ : state) benchmark::DoNotOptimize(found = decode_superblock(bytes, "made up"));
  require(found == superblock, "superblock");
}

BENCHMARK(index_encode)->RangeMultiplier(10)->Range(10, 100'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(index_decode)->RangeMultiplier(10)->Range(10, 100'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(seal);
BENCHMARK(look_at_seal);

}  // namespace
}  // namespace kedge_bench
