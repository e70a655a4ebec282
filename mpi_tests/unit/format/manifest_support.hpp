// Manifests in memory for the tests of the format.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "kedge/error.hpp"
#include "unit/format/support.hpp"

namespace kedge::format::testing {

inline std::vector<std::string> files_of(std::uint32_t ranks) {
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) files.push_back(compose("data/{}/rank-{}.h5", rank / 1024, rank));
  return files;
}

inline std::vector<ShardRow> rows_of(const std::vector<std::string>& files) {
  std::vector<ShardRow> rows;
  for (std::uint32_t rank = 0; rank < files.size(); ++rank) {
    rows.push_back({files[rank], 100000 + rank, 8192, 500 + rank, 0xa0000000U + rank, 0xb0000000U + rank});
  }
  return rows;
}

inline ManifestHead head_of(std::uint32_t ranks) {
  ManifestHead head;
  head.commit.run_id.bytes.fill(1);
  head.commit.id.bytes.fill(2);
  head.commit.parent_id.bytes.fill(3);
  head.commit.generation = 0x0102030405060708U;
  head.commit.incarnation = 5;
  head.commit.world_size = ranks;
  head.commit.time_ns = -6;
  head.total_bytes = 7'000'000;
  head.commit.tag = "step-000100";
  head.run = "heat";
  return head;
}

/// `count` arrays along one dimension, 10 elements a rank, and a replica.
inline ManifestView view_of(std::uint64_t count, std::uint32_t ranks) {
  ManifestView view;
  for (std::uint64_t i = 0; i < count; ++i) {
    ManifestView::Array array{
        compose("fields/array{}", i), DataType::float64, Shape{std::uint64_t{10} * ranks, 16}, {}};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      array.blocks.push_back({rank, Shape{std::uint64_t{10} * rank, 0}, Shape{10, 16}});
    }
    view.arrays.push_back(array);
  }
  view.replicas.push_back({"constants", 0});
  return view;
}

inline const Attributes kAttributes{
    {"time", 0.5}, {"code", std::string("v1.2")}, {"cells", std::vector<std::int64_t>{3, 4}}};

inline MemoryFile manifest_of(std::uint32_t ranks, const Attributes& attributes = kAttributes) {
  const ManifestView view = view_of(3, ranks);
  const auto files = files_of(ranks);
  const auto layout = make_manifest_layout(&view, files, attributes);
  return MemoryFile(encode_manifest(*layout, head_of(ranks), rows_of(files), attributes));
}

inline ManifestReader reader_of(MemoryFile& file) { return {file, file.size(), "the/path"}; }

inline std::string refused_argument(const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.failure().message;
  }
}

}  // namespace kedge::format::testing
