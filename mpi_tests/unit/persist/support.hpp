// Whole commits in memory: a container for each rank, and the manifest that goes with them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"
#include "unit/format/support.hpp"

namespace kedge::persist::testing {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t kSampleRanks = 2;

inline CommitHead sample_head(std::uint64_t generation, std::uint32_t ranks = kSampleRanks) {
  CommitHead head;
  head.run_id.bytes.fill(1);
  head.id.bytes.fill(static_cast<std::uint8_t>(0x20 + generation));
  head.parent_id.bytes.fill(3);
  head.generation = generation;
  head.incarnation = 5;
  head.world_size = ranks;
  head.time_ns = 8;
  head.tag = "step";
  return head;
}

/// A rank's own region of `bytes`, and its block of a global array in which every rank has a row.
inline Bytes container_bytes(const CommitHead& head, std::uint32_t rank, std::uint64_t bytes = 1000,
                             std::uint64_t row = ~std::uint64_t{0}) {
  format::testing::MemoryTarget target;
  format::ContainerWriter writer(target, nullptr);
  const std::uint64_t offset = row == ~std::uint64_t{0} ? rank : row;
  const format::testing::Sample own = format::testing::sample("own", bytes);
  const format::testing::Sample shard = format::testing::sample(
      {"fields/t", DataType::float64, Shape{1, 4}, Shard{Shape{head.world_size, 4}, Shape{offset, 0}}, false});
  writer.add(own.spec, own.bytes);
  writer.add(shard.spec, shard.bytes);
  (void)writer.finish();
  format::Superblock superblock;
  superblock.commit = head;
  superblock.logical_rank = {rank};
  writer.seal(superblock);
  return std::move(target.file.content);
}

inline format::ShardRow row_of(const Bytes& container, std::uint32_t rank) {
  format::testing::MemoryFile file(container);
  const format::ContainerReader reader(file, file.size(), "container");
  const format::Superblock& superblock = reader.superblock();
  return {container_file({rank}),  file.size(),
          superblock.index_offset, static_cast<std::uint32_t>(superblock.index_size),
          superblock.index_crc,    reader.file_crc()};
}

struct SampleCommit {
  TagEntry entry;
  std::vector<Bytes> containers;
  std::vector<format::ShardRow> rows;
  Bytes manifest;
};

inline SampleCommit sample_commit(std::uint64_t generation) {
  SampleCommit commit;
  commit.entry.commit = sample_head(generation);
  commit.entry.directory = tag_directory_name(commit.entry.commit);
  commit.entry.run = "heat";
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < kSampleRanks; ++rank) {
    commit.containers.push_back(container_bytes(commit.entry.commit, rank));
    commit.rows.push_back(row_of(commit.containers.back(), rank));
    commit.entry.total_bytes += commit.containers.back().size();
    files.push_back(container_file({rank}));
  }
  const auto layout = format::make_manifest_layout(nullptr, files, {});
  commit.manifest = format::encode_manifest(*layout, manifest_head_of(commit.entry), commit.rows, {});
  return commit;
}

}  // namespace kedge::persist::testing
