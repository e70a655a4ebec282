// Containers in memory for the tests of the format.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/container_reader.hpp"
#include "format/container_writer.hpp"

namespace kedge::format::testing {

class MemoryFile : public fs::ByteAccess {
 public:
  MemoryFile() = default;
  explicit MemoryFile(std::vector<std::byte> bytes) : content(std::move(bytes)) {}
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    if (!bytes.empty()) std::memcpy(range(offset, bytes.size()).data(), bytes.data(), bytes.size());
    return crc32c(bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    if (!bytes.empty()) std::memcpy(bytes.data(), range(offset, bytes.size()).data(), bytes.size());
    return crc32c(bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return crc32c(range(offset, length), crc);
  }
  [[nodiscard]] std::uint64_t size() const { return content.size(); }

  std::vector<std::byte> content;

 private:
  std::span<std::byte> range(std::uint64_t offset, std::uint64_t length) {
    if (offset > content.size() || length > content.size() - offset) throw Error(ErrorCode::corrupt, "truncated");
    return std::span(content).subspan(offset, length);
  }
};

class MemoryTarget : public ContainerTarget {
 public:
  /// `dirty_bytes` of old content after a zeroed superblock.
  explicit MemoryTarget(std::uint64_t dirty_bytes = 0) {
    file.content.assign(dirty_bytes, std::byte{0xdb});
    std::fill_n(file.content.begin(), std::min(dirty_bytes, kSuperblockBytes), std::byte{0});
  }
  void reserve(std::uint64_t size_bytes) override {
    if (size_bytes > capacity_bytes) throw Error(ErrorCode::no_space, "the store is full");
    if (size_bytes > file.content.size()) file.content.resize(size_bytes);
    ++reserve_calls;
  }
  fs::ByteAccess& bytes() override { return file; }
  void set_size(std::uint64_t size_bytes) override { file.content.resize(size_bytes); }

  MemoryFile file;
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40U;
  int reserve_calls = 0;
};

struct Sample {
  RegionSpec spec;
  std::vector<std::byte> bytes;
};

/// Bytes that depend on name, type and shape, without a zero byte among them (padding is zeros).
inline Sample sample(RegionSpec spec) {
  std::mt19937 random(crc32c(std::as_bytes(std::span(spec.name)), static_cast<std::uint32_t>(spec.dtype)));
  std::vector<std::byte> bytes(region_size_bytes(spec));
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 255 + 1);
  return {std::move(spec), std::move(bytes)};
}

inline Sample sample(std::string name, std::uint64_t bytes) {
  return sample(RegionSpec{std::move(name), DataType::uint8, Shape{bytes}, {}, false});
}

inline Superblock identity() {
  Superblock superblock;
  superblock.commit.run_id.bytes.fill(1);
  superblock.commit.id.bytes.fill(2);
  superblock.commit.parent_id.bytes.fill(3);
  superblock.commit.generation = 4;
  superblock.commit.incarnation = 5;
  superblock.logical_rank = {6};
  superblock.commit.world_size = 7;
  superblock.commit.time_ns = 8;
  superblock.commit.tag = "step-000100";
  return superblock;
}

/// Writes and seals all of them.
inline std::shared_ptr<const Layout> write(MemoryTarget& target, const std::vector<Sample>& samples,
                                           std::shared_ptr<const Layout> predicted = nullptr) {
  ContainerWriter writer(target, std::move(predicted));
  for (const Sample& one : samples) writer.add(one.spec, one.bytes);
  auto layout = writer.finish();
  writer.seal(identity());
  return layout;
}

/// Empty if the container holds exactly these, readable and without damage; otherwise what is wrong.
inline std::string problem(MemoryFile& file, const std::vector<Sample>& samples) {
  const ContainerReader reader(file, file.size(), "file");
  if (const auto damages = reader.verify(); !damages.empty()) return "damaged: " + damages.front().description;
  if (reader.regions().size() != samples.size()) return "another number of regions";
  for (const Sample& one : samples) {
    const StoredRegion* region = reader.find_region(one.spec.name);
    if (region == nullptr) return "lost " + one.spec.name;
    if (region->spec != one.spec) return "another spec of " + one.spec.name;
    std::vector<std::byte> bytes(region->size_bytes);
    reader.read(*region, bytes);
    if (bytes != one.bytes) return "other bytes of " + one.spec.name;
  }
  return {};
}

/// Small, large, aligned, many blocks, empty, scalar, in groups, sharded.
inline std::vector<Sample> mixed_samples() {
  std::vector<Sample> samples;
  samples.push_back(sample({"step", DataType::int64, Shape{}, {}, false}));
  samples.push_back(sample("fields/small", 1000));
  samples.push_back(sample("fields/large", 70001));
  samples.push_back(sample("fields/blocks", 2 * kBlockBytes + 12345));
  samples.push_back(sample("nothing", 0));
  samples.push_back(
      sample({"fields/block of global", DataType::float64, Shape{10, 20}, Shard{{40, 20}, {10, 0}}, false}));
  samples.push_back(sample({"seed", DataType::uint32, Shape{}, Replicated{}, false}));
  samples.push_back(sample("exactly", kLargeRegionBytes));
  samples.push_back(sample({"notes", DataType::opaque, Shape{333}, {}, true}));
  return samples;
}

}  // namespace kedge::format::testing
