#include "harness/sample_store.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "format/container_writer.hpp"
#include "fs/file_system.hpp"
#include "store/store_file.hpp"

namespace kedge::testing {
namespace {

class NoLimit final : public store::SpaceManager {
 public:
  [[nodiscard]] store::Admission::Admitted admit_bytes(std::uint64_t) const override { return nullptr; }
  [[nodiscard]] bool has_ample_space(std::uint64_t) const override { return true; }
  [[noreturn]] void throw_refusal(const Failure& refused, std::uint64_t) const override { throw Error(refused); }
};

}  // namespace

SampleStore::SampleStore() {
  std::string name = (std::filesystem::temp_directory_path() / "kedge-sample-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = name;
}

SampleStore::~SampleStore() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string SampleStore::add(const std::string& name, const std::vector<format::RegionSpec>& regions,
                             const format::Superblock& identity) const {
  write_container(path(name), regions, identity);
  return path(name);
}

void write_container(const std::string& path, const std::vector<format::RegionSpec>& regions,
                     const format::Superblock& identity, unsigned variant) {
  const auto file_system = fs::posix_file_system();
  file_system->remove(path);
  const NoLimit space;
  store::StoreFile target(file_system->create(path), false, space);
  format::ContainerWriter writer(target, nullptr);
  for (const auto& region : regions) {
    std::vector<std::byte> bytes(format::region_size_bytes(region));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + variant);
    writer.add(region, bytes);
  }
  static_cast<void>(writer.finish());
  writer.seal(identity);
  target.flush(false);
}

std::string SampleStore::add_file(const std::string& name, std::size_t size_bytes, char fill) const {
  std::ofstream(path(name), std::ios::binary) << std::string(size_bytes, fill);
  return path(name);
}

std::vector<format::RegionSpec> sample_regions() {
  std::vector<format::RegionSpec> regions;
  for (std::uint8_t type = 1; type <= static_cast<std::uint8_t>(kLastDataType); ++type) {
    const auto dtype = static_cast<DataType>(type);
    regions.push_back({"of/" + std::string(to_string(dtype)), dtype, Shape{3, type}, {}, false});
  }
  regions.push_back({"step", DataType::int64, Shape{}, {}, false});
  regions.push_back({"deep", DataType::uint8, Shape{1, 2, 1, 2, 1, 2, 1, 2}, {}, false});
  regions.push_back({"nothing", DataType::float32, Shape{0, 5}, {}, false});
  regions.push_back({"field", DataType::float64, Shape{640, 1024}, Shard{Shape{1280, 2048}, Shape{640, 1024}}, false});
  regions.push_back({"seed", DataType::uint64, Shape{4}, Replicated{}, false});
  regions.push_back({"model.pt", DataType::opaque, Shape{777}, {}, true});
  return regions;
}

format::Superblock sample_identity() {
  format::Superblock identity;
  identity.commit.run_id.bytes.fill(0x11);
  identity.commit.id.bytes.fill(0xab);
  identity.commit.generation = 7;
  identity.commit.incarnation = 3;
  identity.logical_rank = LogicalRank{2};
  identity.commit.world_size = 8;
  identity.commit.time_ns = 1'790'000'000'000'000'000;  // 2026-09-21T14:13:20Z
  identity.commit.tag = "step-000100";
  return identity;
}

void flip_bit(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  if (byte < 0) throw std::runtime_error("no such byte in " + path);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 4));
}

void truncate(const std::string& path, std::uint64_t size_bytes) { std::filesystem::resize_file(path, size_bytes); }

std::uint64_t file_size(const std::string& path) { return std::filesystem::file_size(path); }

}  // namespace kedge::testing
