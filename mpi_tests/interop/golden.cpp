#include "interop/golden.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/attributes.hpp"
#include "harness/redundancy_support.hpp"
#include "interop/plain_file.hpp"
#include "unit/format/support.hpp"

namespace kedge::testing {
namespace {

using format::testing::MemoryTarget;

// One number for users; a directory of golden files is of one version in all kinds.
static_assert(format::kSetVersion == format::kFormatVersion && format::kManifestVersion == format::kFormatVersion,
              "the versions of containers, sets and manifests are raised together");

constexpr std::size_t kAttributesRoom = 512;
/// Those that version 1 began with: the files stay as they are when a type is added, which raises no version.
constexpr auto kLastGoldenType = static_cast<std::uint8_t>(DataType::opaque);

Id128 id(std::uint8_t first) {
  Id128 made;
  std::iota(made.bytes.begin(), made.bytes.end(), first);
  return made;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> make_container(std::uint32_t rank) {
  MemoryTarget target;
  format::ContainerWriter writer(target, nullptr);
  for (const format::RegionSpec& spec : golden_regions(rank)) writer.add(spec, golden_values(spec, rank));
  static_cast<void>(writer.finish());
  writer.seal(golden_superblock(rank));
  return target.file.content;
}

format::ManifestView make_view() {
  format::ManifestView view;
  view.rank_regions.emplace();
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    for (const format::RegionSpec& spec : golden_regions(rank)) {
      if (format::is_attributes_region(spec)) continue;
      const bool is_shared = !std::holds_alternative<std::monostate>(spec.placement);
      view.rank_regions->push_back({rank, spec.name, spec.dtype, spec.shape, is_shared});
      if (std::holds_alternative<Replicated>(spec.placement) && rank == 0) {
        view.replicas.push_back({spec.name, 0, spec.dtype, spec.shape});
      }
      const auto* shard = std::get_if<Shard>(&spec.placement);
      if (shard == nullptr) continue;
      if (rank == 0) view.arrays.push_back({spec.name, spec.dtype, shard->global_shape, {}, shard->holes_allowed});
      std::ranges::find(view.arrays, spec.name, &format::ManifestView::Array::name)
          ->blocks.push_back({rank, shard->offset, spec.shape});
    }
  }
  return view;
}

std::vector<std::byte> make_manifest(const std::vector<std::vector<std::byte>>& containers) {
  std::vector<std::string> names;
  std::vector<format::ShardRow> rows;
  format::ManifestHead head = golden_head();
  for (std::uint32_t rank = 0; rank < containers.size(); ++rank) {
    const format::Superblock stored = format::decode_superblock(containers[rank], golden_container(rank));
    names.push_back(golden_container(rank));
    rows.push_back({names.back(), stored.file_size, stored.index_offset, static_cast<std::uint32_t>(stored.index_size),
                    stored.index_crc, crc32c(containers[rank])});
    head.total_bytes += stored.file_size;
  }
  const format::ManifestView view = make_view();
  const auto layout = format::make_manifest_layout(&view, names, golden_attributes());
  return format::encode_manifest(*layout, head, rows, golden_attributes());
}

std::vector<std::byte> make_set_file(format::SetFileKind kind, std::uint32_t position,
                                     const redundancy::SetFiles& files) {
  format::SetDescriptor descriptor = golden_set(kind, position);
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    descriptor.members[rank].crc = crc32c(files.container[rank]);
    descriptor.members[rank].size_bytes = files.container[rank].size();
  }
  const std::vector<std::byte>& parity = files.parity[position];
  const bool has_parity = kind == format::SetFileKind::parity;
  if (has_parity) {
    descriptor.parity_bytes = parity.size();
    descriptor.parity_crc = crc32c(parity);
  }
  const auto begin = format::encode_set_descriptor(descriptor);
  std::vector<std::byte> bytes(begin.size() + descriptor.parity_bytes);
  std::ranges::copy(begin, bytes.begin());
  if (has_parity) std::ranges::copy(parity, bytes.begin() + format::kSuperblockBytes);
  return bytes;
}

}  // namespace

std::vector<format::RegionSpec> golden_regions(std::uint32_t rank) {
  std::vector<format::RegionSpec> regions;
  regions.push_back({"step", DataType::int64, Shape{}, {}, false});
  regions.push_back({"fields/temperature", DataType::float64, Shape{4, 6},
                     Shard{{std::uint64_t{4} * kGoldenRanks, 6}, {std::uint64_t{4} * rank, 0}, false}, false});
  regions.push_back({"fields/sparse", DataType::float32, Shape{2, 3},
                     Shard{{std::uint64_t{3} * kGoldenRanks, 3}, {std::uint64_t{3} * rank, 0}, true}, false});
  for (std::uint8_t type = 1; type <= kLastGoldenType; ++type) {
    const auto dtype = static_cast<DataType>(type);
    regions.push_back({compose("types/{}", to_string(dtype)), dtype, Shape{2, 3 + rank}, {}, false});
  }
  regions.push_back({"seed \xcf\x83", DataType::uint64, Shape{4}, Replicated{}, false});
  regions.push_back({"nothing", DataType::int32, Shape{0, 2}, {}, false});
  regions.push_back({"model.pt", DataType::opaque, Shape{77}, {}, true});
  if (rank == 0) {
    regions.push_back({format::kAttributesName, DataType::opaque, Shape{kAttributesRoom}, {}, false});
  }
  return regions;
}

std::vector<std::byte> golden_values(const format::RegionSpec& spec, std::uint32_t rank) {
  if (format::is_attributes_region(spec)) {
    std::string text = format::encode_attributes(golden_attributes());
    text.resize(kAttributesRoom, ' ');
    return bytes_of(text);
  }
  const std::uint64_t first = std::holds_alternative<Replicated>(spec.placement) ? 0 : std::uint64_t{24} * rank;
  const std::uint64_t count = format::region_size_bytes(spec) / size_bytes(spec.dtype);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < count; ++i) append_element(bytes, spec.dtype, first + i);
  return bytes;
}

Attributes golden_attributes() {
  return {{"time", 0.25},
          {"code", std::string("w\xc3\xa4rme 1.2")},
          {"step", std::int64_t{-7}},
          {"grid", std::vector<std::int64_t>{12, 6}},
          {"weights", std::vector<double>{0.5, 1.5}}};
}

format::Superblock golden_superblock(std::uint32_t rank) {
  const format::ManifestHead head = golden_head();
  format::Superblock superblock;
  superblock.commit = head.commit;
  superblock.logical_rank = LogicalRank{rank};
  return superblock;
}

format::ManifestHead golden_head() {
  format::ManifestHead head;
  head.commit.run_id = id(0x10);
  head.commit.id = id(0x30);
  head.commit.parent_id = id(0x50);
  head.commit.generation = 0x0102030405060708U;
  head.commit.incarnation = 0x1112131415161718U;
  head.commit.world_size = kGoldenRanks;
  head.commit.time_ns = 1'790'000'000'123'456'789;
  head.commit.tag = "step-000042";
  head.run = "heat";
  return head;
}

format::SetDescriptor golden_set(format::SetFileKind kind, std::uint32_t position) {
  const format::ManifestHead head = golden_head();
  format::SetDescriptor descriptor;
  descriptor.kind = kind;
  descriptor.run_id = head.commit.run_id;
  descriptor.commit_id = head.commit.id;
  descriptor.protection_id = id(0x70);
  descriptor.generation = head.commit.generation;
  descriptor.world_size = head.commit.world_size;
  descriptor.scheme = Scheme::xor_;
  descriptor.set_number = 9;
  descriptor.position = position;
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) descriptor.members.push_back({LogicalRank{rank}, 0, 0});
  return descriptor;
}

std::string golden_container(std::uint32_t rank) { return compose("data/0/rank-{}.h5", rank); }
std::string golden_parity(std::uint32_t rank) { return compose("parity-{}.kedge", rank); }
std::string golden_descriptor(std::uint32_t rank) { return compose("set-{}.kedge", rank); }

std::vector<GoldenFile> make_golden_files() {
  redundancy::SetFiles set;
  redundancy::SetShape shape{Scheme::xor_, {}};
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    set.container.push_back(make_container(rank));
    shape.sizes.push_back(set.container.back().size());
  }
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) set.parity.emplace_back(parity_bytes(shape, rank));
  execute(set, encode_stripes(shape));

  std::vector<GoldenFile> files;
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    files.push_back({golden_container(rank), set.container[rank]});
    files.push_back({golden_parity(rank), make_set_file(format::SetFileKind::parity, rank, set)});
    files.push_back({golden_descriptor(rank), make_set_file(format::SetFileKind::descriptor, rank, set)});
  }
  files.push_back({kGoldenManifest, make_manifest(set.container)});
  files.push_back({kGoldenHdf5, bytes_of(hdf5_release() + "\n")});
  return files;
}

std::string hdf5_release() {
  std::array<unsigned, 3> release{};
  H5get_libversion(&release[0], &release[1], &release[2]);
  return compose("{}.{}.{}", release[0], release[1], release[2]);
}

}  // namespace kedge::testing
