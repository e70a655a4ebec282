#include "harness/sample_prefix.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::testing {
namespace {

const Attributes kAttributes{{"time", 0.25},
                             {"code", std::string("heat2d 1.2")},
                             {"grid", std::vector<std::int64_t>{1280, 2048}},
                             {"step", std::int64_t{100}}};

Id128 id_of(std::uint8_t kind, std::uint64_t number) {
  Id128 id;
  id.bytes.fill(kind);
  for (std::size_t i = 0; i < 8; ++i)
    id.bytes[i] = static_cast<std::uint8_t>((number + 1) * 0x9e3779b97f4a7c15U >> (8 * i));
  return id;
}

format::ManifestView view_of(std::uint32_t ranks) {
  format::ManifestView view;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const format::RegionSpec& spec : sample_rank_regions(rank, ranks)) {
      const auto* shard = std::get_if<Shard>(&spec.placement);
      if (shard == nullptr) continue;
      auto array =
          std::find_if(view.arrays.begin(), view.arrays.end(), [&](const auto& a) { return a.name == spec.name; });
      if (array == view.arrays.end()) {
        array = view.arrays.insert(view.arrays.end(), {spec.name, spec.dtype, shard->global_shape, {}});
      }
      array->blocks.push_back({rank, shard->offset, spec.shape});
    }
  }
  view.replicas.push_back({"seed", 0, DataType::uint64, Shape{4}});
  return view;
}

format::Superblock identity_of(const persist::TagEntry& entry, std::uint32_t rank) {
  format::Superblock identity;
  identity.commit = entry.commit;
  identity.logical_rank = LogicalRank{rank};
  return identity;
}

format::ShardRow row_of(const std::string& path, const std::string& file) {
  const auto opened = fs::posix_file_system()->open(path, fs::Access::read);
  const format::ContainerReader reader(*opened, file_size(path), path);
  const format::Superblock& superblock = reader.superblock();
  return {file,
          superblock.file_size,
          superblock.index_offset,
          static_cast<std::uint32_t>(superblock.index_size),
          superblock.index_crc,
          reader.file_crc()};
}

std::vector<std::string> files_of(std::uint32_t ranks) {
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) files.push_back(persist::container_file(LogicalRank{rank}));
  return files;
}

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

persist::TagEntry sample_entry(std::uint64_t generation, std::uint32_t ranks) {
  persist::TagEntry entry;
  entry.commit.tag = compose("step-{:06}", 100 * generation);
  entry.commit.generation = generation;
  entry.commit.id = id_of(0xc0, generation);
  if (generation > 1) entry.commit.parent_id = id_of(0xc0, generation - 1);
  entry.commit.run_id = id_of(0xa0, 0);
  entry.run = "heat";
  entry.commit.incarnation = 3;
  entry.commit.world_size = ranks;
  entry.commit.time_ns = 1'790'000'000'000'000'000 + static_cast<std::int64_t>(generation) * 60'000'000'000;
  entry.total_bytes = std::uint64_t{ranks} << 20U;
  entry.directory = persist::tag_directory_name(entry.commit);
  return entry;
}

std::vector<format::RegionSpec> sample_rank_regions(std::uint32_t rank, std::uint32_t ranks) {
  std::vector<format::RegionSpec> regions;
  const Shape all{std::uint64_t{40} * ranks, 64};
  const Shape offset{std::uint64_t{40} * rank, 0};
  regions.push_back({"temperature", DataType::float64, Shape{40, 64}, Shard{all, offset}, false});
  regions.push_back({"fields/mask", DataType::boolean, Shape{40, 64}, Shard{all, offset}, false});
  regions.push_back({"step", DataType::int64, Shape{}, {}, false});
  regions.push_back({"particles", DataType::float32, Shape{100 + rank, 3}, {}, false});
  regions.push_back({"seed", DataType::uint64, Shape{4}, Replicated{}, false});
  if (rank == 0) regions.push_back({"model.pt", DataType::opaque, Shape{777}, {}, true});
  return regions;
}

std::vector<std::byte> sample_manifest(const persist::TagEntry& entry) {
  const auto files = files_of(entry.commit.world_size);
  std::vector<format::ShardRow> rows;
  rows.reserve(files.size());
  for (const std::string& file : files) rows.push_back({file, 100'000, 8192, 500, 1, 2});
  return format::encode_manifest(*format::make_manifest_layout(nullptr, files, {}), persist::manifest_head_of(entry),
                                 rows, {});
}

void write_manifest(const std::string& prefix, const persist::TagEntry& entry) {
  std::filesystem::create_directories(fs::join(prefix, entry.directory));
  write_bytes(fs::join(fs::join(prefix, entry.directory), persist::kManifestFile), sample_manifest(entry));
}

void write_containers(const std::string& prefix, const persist::TagEntry& entry) {
  const std::string directory = fs::join(prefix, entry.directory);
  for (std::uint32_t rank = 0; rank < entry.commit.world_size; ++rank) {
    std::filesystem::create_directories(fs::join(directory, persist::container_directory(LogicalRank{rank})));
    write_container(fs::join(directory, persist::container_file(LogicalRank{rank})),
                    sample_rank_regions(rank, entry.commit.world_size), identity_of(entry, rank));
  }
}

void write_checkpoint(const std::string& prefix, const persist::TagEntry& entry) {
  write_containers(prefix, entry);
  const std::string directory = fs::join(prefix, entry.directory);
  const auto files = files_of(entry.commit.world_size);
  format::ManifestHead head = persist::manifest_head_of(entry);
  head.total_bytes = 0;
  std::vector<format::ShardRow> rows;
  for (const std::string& file : files) {
    rows.push_back(row_of(fs::join(directory, file), file));
    head.total_bytes += rows.back().size_bytes;
  }
  const format::ManifestView view = view_of(entry.commit.world_size);
  const auto layout = format::make_manifest_layout(&view, files, kAttributes);
  write_bytes(fs::join(directory, persist::kManifestFile), format::encode_manifest(*layout, head, rows, kAttributes));
}

std::string SamplePrefix::container(const persist::TagEntry& entry, std::uint32_t rank) const {
  return fs::join(path(entry.directory), persist::container_file(LogicalRank{rank}));
}

std::string SamplePrefix::add(const persist::TagEntry& entry) const {
  write_checkpoint(directory(), entry);
  return path(entry.directory);
}

void SamplePrefix::catalog(const persist::TagEntry& entry) const {
  std::filesystem::create_directories(path(".kedge/" + entry.run));
  const auto file_system = fs::posix_file_system();
  persist::TagCatalog(*file_system, path(".kedge/" + entry.run)).add(entry);
}

}  // namespace kedge::testing
