// How manifests are made: by HDF5 once for a structure, then without it; what they refuse to be made of; large ones in
// time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "format/hdf5_structure.hpp"
#include "unit/format/manifest_support.hpp"

namespace kedge::format::testing::manifest_layout_test {
namespace {

using ::testing::HasSubstr;

TEST(FormatManifestLayout, AttributesMayChangeWithoutANewLayout) {
  const auto files = files_of(2);
  const auto layout = make_manifest_layout(nullptr, files, {{"text", std::string(513, 'x')}});
  for (const std::size_t size : {0U, 1U, 900U, 1013U}) {  // 1024 bytes as JSON
    const Attributes attributes{{"text", std::string(size, 'x')}};
    EXPECT_TRUE(can_hold_attributes(*layout, attributes));
    MemoryFile file;
    file.content = encode_manifest(*layout, head_of(2), rows_of(files), attributes);
    EXPECT_EQ(reader_of(file).attributes(), attributes);
    EXPECT_TRUE(reader_of(file).verify().empty());
  }
  const Attributes larger{{"text", std::string(1014, 'x')}};
  EXPECT_FALSE(can_hold_attributes(*layout, larger));
  EXPECT_THAT(
      refused_argument([&] { static_cast<void>(encode_manifest(*layout, head_of(2), rows_of(files), larger)); }),
      HasSubstr("create a new layout"));
}

TEST(FormatManifestLayout, EncodingCallsNoHdf5AndNothingElseChanges) {
  const ManifestView view = view_of(5, 4);
  const auto files = files_of(4);
  const auto layout = make_manifest_layout(&view, files, kAttributes);
  const std::uint64_t entries = hdf5_call_count();
  ManifestHead head = head_of(4);
  auto rows = rows_of(files);
  const auto one = encode_manifest(*layout, head, rows, kAttributes);
  head.commit.generation += 1;
  rows[2].crc += 1;
  const auto two = encode_manifest(*layout, head, rows, kAttributes);
  EXPECT_EQ(hdf5_call_count(), entries);
  MemoryFile file;
  file.content = one;
  const std::uint64_t row = reader_of(file).head().table_offset + 2 * kShardRowBytes;
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = kSuperblockBytes; i < one.size(); ++i) {
    const bool in_row = i >= row && i < row + kShardRowBytes;
    ASSERT_TRUE(in_row || one[i] == two[i]) << i;
  }
}

TEST(FormatManifestLayout, OneStructureMakesOneLayoutWhateverTheOrderItIsHeardIn) {
  ManifestView view = view_of(40, 8);
  const auto files = files_of(8);
  const auto bytes = [&] {
    return encode_manifest(*make_manifest_layout(&view, files, kAttributes), head_of(8), rows_of(files), kAttributes);
  };
  const auto one = bytes();
  EXPECT_TRUE(one == bytes());
  std::ranges::reverse(view.arrays);
  for (auto& array : view.arrays) std::ranges::reverse(array.blocks);
  EXPECT_TRUE(one == bytes());
  view.arrays.front().global_shape = Shape{80, 17};
  EXPECT_FALSE(one == bytes());
}

TEST(FormatManifestLayout, WhatDoesNotFitIsRefusedWhenItIsMade) {
  const auto files = files_of(2);
  const auto layout = make_manifest_layout(nullptr, files, {});
  const auto encode = [&](const ManifestHead& head, const std::vector<ShardRow>& rows, const Attributes& attributes) {
    return refused_argument([&] { static_cast<void>(encode_manifest(*layout, head, rows, attributes)); });
  };
  ManifestHead head = head_of(2);
  const auto rows = rows_of(files);
  EXPECT_EQ(encode(head, rows, {}), "");
  EXPECT_THAT(encode(head, rows, kAttributes), HasSubstr("new layout"));
  EXPECT_THAT(encode(head, {rows[0]}, {}), HasSubstr("1 rows"));
  EXPECT_THAT(encode(head_of(3), rows, {}), HasSubstr("world size 3"));
  EXPECT_THAT(encode(head, {rows[1], rows[0]}, {}), HasSubstr("was laid out for 'data/0/rank-0.h5'"));
  head.commit.tag.assign(129, 't');
  EXPECT_THAT(encode(head, rows, {}), HasSubstr("tag"));
  head = head_of(2);
  head.run.assign(65, 'r');
  EXPECT_THAT(encode(head, rows, {}), HasSubstr("run"));
}

TEST(FormatManifestLayout, NamesThatContradictEachOtherAreRefused) {
  const auto files = files_of(2);
  const auto layout = [&](const ManifestView& view) {
    return refused_argument([&] { static_cast<void>(make_manifest_layout(&view, files, {})); });
  };
  const ManifestView::Array array{"a/b", DataType::int8, Shape{1}, {{0, Shape{0}, Shape{1}}}};
  ManifestView::Array inner = array;
  inner.name = "a";
  EXPECT_THAT(layout({{array, inner}, {}}), HasSubstr("'a'"));
  EXPECT_THAT(layout({{array}, {{"a", 0}}}), HasSubstr("'a'"));
  EXPECT_THAT(layout({{array}, {{"a/b/c", 0}}}), HasSubstr("'a/b'"));
  EXPECT_THAT(layout({{array, array}, {}}), HasSubstr("names two"));
  EXPECT_THAT(layout({{array}, {{"a/b", 0}}}), HasSubstr("names two"));
  EXPECT_THAT(layout({{}, {{"ranks/0", 0}}}), HasSubstr("is reserved"));
  EXPECT_THAT(layout({{}, {{"c", 2}}}), HasSubstr("rank 2"));
  inner.blocks[0].rank = 2;
  EXPECT_THAT(layout({{inner}, {}}), HasSubstr("rank 2"));
  inner.blocks[0] = {0, Shape{1}, Shape{1}};
  EXPECT_THAT(layout({{inner}, {}}), HasSubstr("does not fit"));
  for (const std::string file : {"", "/rank-0.h5", "../rank-0.h5", "a//b", "0123456789012345678901234567890123"}) {
    EXPECT_NE(refused_argument([&] { static_cast<void>(make_manifest_layout(nullptr, std::vector{file}, {})); }), "");
  }
  EXPECT_THAT(refused_argument([] { static_cast<void>(make_manifest_layout(nullptr, {}, {})); }),
              HasSubstr("0 containers"));
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const ManifestView* view, std::uint32_t ranks, double limit_s) {
  const auto files = files_of(ranks);
  const auto rows = rows_of(files);
  std::shared_ptr<const ManifestLayout> layout;
  MemoryFile file;
  const double layout_s = seconds([&] { layout = make_manifest_layout(view, files, kAttributes); });
  const double encode_s = seconds([&] { file.content = encode_manifest(*layout, head_of(ranks), rows, kAttributes); });
  const double verify_s = seconds([&] { EXPECT_TRUE(reader_of(file).verify().empty()); });
  const double rows_s = seconds([&] { EXPECT_EQ(reader_of(file).rows().size(), ranks); });
  std::printf("%zu arrays, %u ranks: layout %.3f s, encode %.4f s, verify %.4f s, rows %.4f s, %.2f MB\n",
              view == nullptr ? 0 : view->arrays.size(), ranks, layout_s, encode_s, verify_s, rows_s,
              static_cast<double>(file.size()) / 1e6);
  EXPECT_LT(layout_s, limit_s);
  EXPECT_LT(encode_s, limit_s / 10);
}

TEST(FormatManifestLayout, RegionsOfRanksAreListedInAnyOrderAndRefusedAsOthersAre) {
  const auto files = files_of(2);
  ManifestView view;
  view.rank_regions = std::vector<ManifestView::RankRegion>{{1, "own/state", DataType::int32, Shape{3}, false},
                                                            {0, "own/state", DataType::int32, Shape{2}, false},
                                                            {0, "step", DataType::int64, Shape{}, false},
                                                            {1, "t", DataType::float32, Shape{4}, true}};
  const auto bytes = [&] {
    return encode_manifest(*make_manifest_layout(&view, files, {}), head_of(2), rows_of(files), {});
  };
  const auto one = bytes();
  std::ranges::reverse(*view.rank_regions);
  EXPECT_TRUE(one == bytes());
  const auto refused = [&](const ManifestView::RankRegion& region) {
    view.rank_regions = std::vector{region};
    return refused_argument([&] { static_cast<void>(bytes()); });
  };
  EXPECT_THAT(refused({2, "a/b", DataType::int8, Shape{1}, false}), HasSubstr("rank 2"));
  EXPECT_THAT(refused({0, "a/../b", DataType::int8, Shape{1}, false}), HasSubstr("'a/../b'"));
}

TEST(FormatManifestLayout, LargeOnesTakeLittleTime) {
  const ManifestView view = view_of(1000, 64);
  measure(&view, 64, 10);  // sanitizers and busy machines included
  const ManifestView wide = view_of(10, 4096);
  measure(&wide, 4096, 10);
  measure(nullptr, 100000, 20);
  ManifestView listed;
  listed.rank_regions.emplace();
  for (std::uint32_t i = 0; i < 1000; ++i) {  // arrays::kListedRegionsMax
    listed.rank_regions->push_back({i / 10, compose("group/region{}", i % 10), DataType::float64, Shape{7, 3}, false});
  }
  measure(&listed, 100, 10);
}

}  // namespace
}  // namespace kedge::format::testing::manifest_layout_test
