// Masters: round trip, every bit guarded, contradictions refused, and the bytes themselves. What h5py sees of them is
// tried in interop/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "format/fields.hpp"
#include "format/hdf5_structure.hpp"
#include "format/master_rows.hpp"
#include "format_support.hpp"

namespace kedge::format::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> files_of(std::uint32_t ranks) {
  std::vector<std::string> files;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) files.push_back(compose("data/{}/rank-{}.h5", rank / 1024, rank));
  return files;
}

std::vector<ShardRow> rows_of(const std::vector<std::string>& files) {
  std::vector<ShardRow> rows;
  for (std::uint32_t rank = 0; rank < files.size(); ++rank) {
    rows.push_back({files[rank], 100000 + rank, 8192, 500 + rank, 0xa0000000U + rank, 0xb0000000U + rank});
  }
  return rows;
}

MasterHead head_of(std::uint32_t ranks) {
  MasterHead head;
  head.run_id.bytes.fill(1);
  head.commit_id.bytes.fill(2);
  head.parent_commit_id.bytes.fill(3);
  head.generation = 0x0102030405060708U;
  head.incarnation = 5;
  head.world_size = ranks;
  head.time_ns = -6;
  head.total_bytes = 7'000'000;
  head.tag = "step-000100";
  head.run = "heat";
  return head;
}

// `count` arrays along one dimension, 10 elements a rank, and a replica.
View view_of(std::uint64_t count, std::uint32_t ranks) {
  View view;
  for (std::uint64_t i = 0; i < count; ++i) {
    View::Array array{compose("fields/array{}", i), DataType::float64, Shape{std::uint64_t{10} * ranks, 16}, {}};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      array.blocks.push_back({rank, Shape{std::uint64_t{10} * rank, 0}, Shape{10, 16}});
    }
    view.arrays.push_back(array);
  }
  view.replicas.push_back({"constants", 0});
  return view;
}

const Attributes kAttributes{{"time", 0.5}, {"code", std::string("v1.2")}, {"cells", std::vector<std::int64_t>{3, 4}}};

MemoryFile master_of(std::uint32_t ranks, const Attributes& attributes = kAttributes) {
  const View view = view_of(3, ranks);
  const auto files = files_of(ranks);
  const auto layout = make_master_layout(&view, files, attributes.empty() ? 0 : 100);
  return MemoryFile(encode_master(*layout, head_of(ranks), rows_of(files), attributes));
}

MasterReader reader_of(MemoryFile& file) { return {file, file.size(), "the/path"}; }

// What the reader says against the file; empty if nothing.
std::string refusal(MemoryFile& file, ErrorCode code = ErrorCode::corrupt) {
  try {
    static_cast<void>(reader_of(file));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.failure().path, "the/path");
    return error.failure().message;
  }
}

// Makes the head's checksum right again after a field was changed on purpose.
void reseal(MemoryFile& file) {
  put(file.content, master_at::kCrc, crc32c(std::span<const std::byte>(file.content).first(master_at::kCrc)));
}

template <class T>
std::string refusal_with(std::size_t place, const T& value, ErrorCode code = ErrorCode::corrupt) {
  MemoryFile file = master_of(2);
  put(file.content, place, value);
  reseal(file);
  return refusal(file, code);
}

std::string refused_argument(const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.failure().message;
  }
}

TEST(FormatMaster, R12_ComesBackAsItWas) {
  for (const std::uint32_t ranks : {1U, 2U, 100U}) {
    MemoryFile file = master_of(ranks);
    const MasterReader reader = reader_of(file);
    MasterHead head = head_of(ranks);
    head.file_size = file.size();
    head.table_offset = reader.head().table_offset;
    head.attributes_offset = reader.head().attributes_offset;
    head.attributes_size = reader.head().attributes_size;
    head.has_view = true;
    head.extents = reader.head().extents;
    EXPECT_EQ(reader.head(), head);
    EXPECT_EQ(reader.rows(), rows_of(files_of(ranks)));
    EXPECT_EQ(reader.row(LogicalRank{ranks - 1}), rows_of(files_of(ranks)).back());
    EXPECT_EQ(reader.attributes(), kAttributes);
    EXPECT_TRUE(reader.verify().empty());
    EXPECT_THROW(static_cast<void>(reader.row(LogicalRank{ranks})), Error);
  }
}

TEST(FormatMaster, WithoutAttributesOrViewThereIsLess) {
  MemoryFile none = master_of(2, {});
  EXPECT_EQ(reader_of(none).head().attributes_offset, 0U);
  EXPECT_TRUE(reader_of(none).attributes().empty());
  const auto files = files_of(3);
  const auto layout = make_master_layout(nullptr, files, 1);
  EXPECT_EQ(attributes_room(*layout), 512U);
  MemoryFile file;
  file.content = encode_master(*layout, head_of(3), rows_of(files), {});
  EXPECT_FALSE(reader_of(file).head().has_view);
  EXPECT_TRUE(reader_of(file).attributes().empty()) << "{} of room for more";
  EXPECT_TRUE(reader_of(file).verify().empty());
}

TEST(FormatMaster, AttributesMayChangeWithoutANewLayout) {
  const auto files = files_of(2);
  const auto layout = make_master_layout(nullptr, files, 513);
  EXPECT_EQ(attributes_room(*layout), 1024U);
  for (const std::size_t size : {1U, 900U, 1013U}) {
    const Attributes attributes{{"text", std::string(size, 'x')}};
    MemoryFile file;
    file.content = encode_master(*layout, head_of(2), rows_of(files), attributes);
    EXPECT_EQ(reader_of(file).attributes(), attributes);
  }
  const Attributes larger{{"text", std::string(1014, 'x')}};
  EXPECT_THAT(refused_argument([&] { static_cast<void>(encode_master(*layout, head_of(2), rows_of(files), larger)); }),
              HasSubstr("make a new layout"));
}

TEST(FormatMaster, EncodingCallsNoHdf5AndNothingElseChanges) {
  const View view = view_of(5, 4);
  const auto files = files_of(4);
  const auto layout = make_master_layout(&view, files, 100);
  const std::uint64_t entries = hdf5_entries();
  MasterHead head = head_of(4);
  auto rows = rows_of(files);
  const auto one = encode_master(*layout, head, rows, kAttributes);
  head.generation += 1;
  rows[2].crc += 1;
  const auto two = encode_master(*layout, head, rows, kAttributes);
  EXPECT_EQ(hdf5_entries(), entries);
  MemoryFile file;
  file.content = one;
  const std::uint64_t row = reader_of(file).head().table_offset + 2 * kShardRowBytes;
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = kSuperblockBytes; i < one.size(); ++i) {
    const bool in_row = i >= row && i < row + kShardRowBytes;
    ASSERT_TRUE(in_row || one[i] == two[i]) << i;
  }
}

TEST(FormatMaster, OneStructureMakesOneLayoutWhateverTheOrderItIsHeardIn) {
  View view = view_of(40, 8);
  const auto files = files_of(8);
  const auto bytes = [&] {
    return encode_master(*make_master_layout(&view, files, 100), head_of(8), rows_of(files), kAttributes);
  };
  const auto one = bytes();
  EXPECT_TRUE(one == bytes());
  std::ranges::reverse(view.arrays);
  for (auto& array : view.arrays) std::ranges::reverse(array.blocks);
  EXPECT_TRUE(one == bytes());
  view.arrays.front().global_shape = Shape{80, 17};
  EXPECT_FALSE(one == bytes());
}

TEST(FormatMaster, R31_EveryFlippedBitOfTheHeadIsRefused) {
  MemoryFile file = master_of(2);
  for (std::size_t bit = 0; bit < kSuperblockBytes * 8; ++bit) {
    file.content[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(refusal(file), "") << "bit " << bit;
    file.content[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_EQ(refusal(file), "");
}

TEST(FormatMaster, R31_EveryFlippedByteIsFoundByVerify) {
  MemoryFile file = master_of(2);
  const MasterReader reader = reader_of(file);
  for (std::size_t place = 0; place < file.size(); ++place) {
    file.content[place] ^= std::byte{0x10};
    const auto damages = reader.verify();
    ASSERT_EQ(damages.size(), 1U) << place;
    ASSERT_LE(damages[0].offset, place);
    ASSERT_LT(place - damages[0].offset, damages[0].length);
    file.content[place] ^= std::byte{0x10};
  }
  std::uint64_t checked = 0;
  EXPECT_TRUE(reader.verify([&](std::uint64_t bytes) { checked += bytes; }).empty());
  EXPECT_EQ(checked, file.size());
}

TEST(FormatMaster, ADamagedRowIsNamedAndTheOthersAreRead) {
  MemoryFile file = master_of(3);
  const MasterReader reader = reader_of(file);
  const std::uint64_t row = reader.head().table_offset + kShardRowBytes;
  for (std::size_t bit = 0; bit < kShardRowBytes * 8; ++bit) {
    file.content[row + bit / 8] ^= std::byte{1} << (bit % 8);
    for (const bool all : {false, true}) {
      try {
        all ? static_cast<void>(reader.rows()) : static_cast<void>(reader.row(LogicalRank{1}));
        FAIL() << "accepted with bit " << bit;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::corrupt);
        ASSERT_THAT(error.failure().message, HasSubstr("rank 1"));
      }
    }
    ASSERT_EQ(reader.row(LogicalRank{2}), rows_of(files_of(3))[2]);
    file.content[row + bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_NO_THROW(static_cast<void>(reader.rows()));
  std::swap_ranges(file.content.begin() + static_cast<std::ptrdiff_t>(row),
                   file.content.begin() + static_cast<std::ptrdiff_t>(row + kShardRowBytes),
                   file.content.begin() + static_cast<std::ptrdiff_t>(row + kShardRowBytes));
  EXPECT_THROW(static_cast<void>(reader.rows()), Error) << "rows were exchanged";
  EXPECT_EQ(reader.verify().size(), 2U);
}

TEST(FormatMaster, ARowOfAnotherCommitIsRefused) {
  const auto files = files_of(2);
  const auto layout = make_master_layout(nullptr, files, 0);
  MasterHead other = head_of(2);
  other.commit_id.bytes.fill(9);
  MemoryFile file(encode_master(*layout, head_of(2), rows_of(files), {}));
  const auto foreign = encode_master(*layout, other, rows_of(files), {});
  const std::uint64_t row = reader_of(file).head().table_offset + kShardRowBytes;
  std::memcpy(file.content.data() + row, foreign.data() + row, kShardRowBytes);
  EXPECT_NO_THROW(static_cast<void>(reader_of(file).row(LogicalRank{0})));
  EXPECT_THROW(static_cast<void>(reader_of(file).row(LogicalRank{1})), Error);
  ASSERT_EQ(reader_of(file).verify().size(), 1U);
  EXPECT_THAT(reader_of(file).verify()[0].what, HasSubstr("row of rank 1"));
}

TEST(FormatMaster, RowsThatLeadOutsideAreRefused) {
  const auto refusal_of = [](const ShardRow& row, const std::function<void(std::span<std::byte>)>& change = {}) {
    std::array<std::byte, kShardRowBytes> bytes{};
    const RowPlace place{head_of(8).commit_id, LogicalRank{7}};
    encode_row(row, place, bytes);
    if (change) change(bytes);
    put(bytes, row_at::kRowCrc, row_crc(bytes, place));
    try {
      static_cast<void>(decode_row(bytes, place, "the/path"));
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      return error.failure().message;
    }
  };
  const ShardRow good{"data/0/rank-7.h5", 100000, 8192, 91808, 1, 2};
  EXPECT_EQ(refusal_of(good), "");
  for (const std::string_view name :
       {"/etc/passwd", "../rank-7.h5", "data/../x", "data//x", "x/", "a/./b", "\x1b[2J"}) {
    const auto put_name = [&](std::span<std::byte> bytes) {
      std::ranges::fill(bytes.first(kShardFileBytesMax), std::byte{0});
      std::memcpy(bytes.data(), name.data(), name.size());
    };
    EXPECT_THAT(refusal_of(good, put_name), HasSubstr("rank 7 is impossible")) << name;
  }
  EXPECT_NE(refusal_of(good, [](auto bytes) { bytes[0] = std::byte{0}; }), "") << "something behind the name";
  ShardRow outside = good;
  ++outside.index_size;
  EXPECT_THAT(refusal_of(outside), HasSubstr("outside"));
  outside.index_offset = ~std::uint64_t{0};
  EXPECT_THAT(refusal_of(outside), HasSubstr("outside"));
}

TEST(FormatMaster, WhatIsNoneOrUnfinishedIsRefused) {
  MemoryFile file = master_of(2);
  const auto whole = file.content;
  for (const std::size_t size : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, whole.size() - 1}) {
    file.content.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(refusal(file), "") << size;
  }
  file.content = whole;
  file.content.push_back(std::byte{0});
  EXPECT_THAT(refusal(file), HasSubstr("appended"));
  file.content.assign(whole.size(), std::byte{0});
  EXPECT_THAT(refusal(file), HasSubstr("never finished"));
  EXPECT_THAT(refusal_with(master_at::kMagic, kMagic), HasSubstr("first bytes")) << "a container";
  EXPECT_THAT(refusal_with(master_at::kMagic, kSetMagic), HasSubstr("first bytes")) << "a set's description";
  EXPECT_THAT(refusal_with(master_at::kSealed, std::uint32_t{0}), HasSubstr("sealed flag"));
  EXPECT_THAT(refusal_with(master_at::kVersion, std::uint32_t{0}), HasSubstr("version"));
}

TEST(FormatMaster, R9_ANewerVersionIsRefusedByName) {
  EXPECT_THAT(refusal_with(master_at::kVersion, kMasterVersion + 1, ErrorCode::mismatch),
              AllOf(HasSubstr("version 2"), HasSubstr("newer Kedge")));
}

TEST(FormatMaster, FieldsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refusal_with(master_at::kWorldSize, std::uint32_t{3}), HasSubstr("shard table"));
  EXPECT_THAT(refusal_with(master_at::kWorldSize, std::uint32_t{0}), HasSubstr("no ranks"));
  EXPECT_THAT(refusal_with(master_at::kHasView, std::uint32_t{2}), HasSubstr("view"));
  EXPECT_THAT(refusal_with(master_at::kFileSize, ~std::uint64_t{0}), HasSubstr("bytes"));
  EXPECT_THAT(refusal_with(master_at::kFileSize, std::uint64_t{4096}), HasSubstr("extents"));
  EXPECT_THAT(refusal_with(master_at::kShardsOffset, std::uint64_t{4096}), HasSubstr("shard table"));
  EXPECT_THAT(refusal_with(master_at::kAttributesOffset, std::uint64_t{0}), HasSubstr("attributes"));
  EXPECT_THAT(refusal_with(master_at::kAttributesOffset, std::uint64_t{4096}), HasSubstr("attributes"));
  EXPECT_THAT(refusal_with(master_at::kAttributesSize, std::uint64_t{513}), HasSubstr("attributes"));
  EXPECT_THAT(refusal_with(master_at::kTagSize, std::uint32_t{129}), HasSubstr("tag"));
  EXPECT_THAT(refusal_with(master_at::kTagSize, std::uint32_t{3}), HasSubstr("tag"));
  EXPECT_THAT(refusal_with(master_at::kRunSize, ~std::uint32_t{0}), HasSubstr("run"));
  EXPECT_THAT(refusal_with(master_at::kTableSize, std::uint32_t{85}), HasSubstr("extents"));
  EXPECT_THAT(refusal_with(master_at::kTableSize, std::uint32_t{1}), HasSubstr("extents"));
  EXPECT_THAT(refusal_with(master_at::kTable, std::uint32_t{9}), HasSubstr("kind 9"));
  EXPECT_THAT(refusal_with(master_at::kTable + 16, ~std::uint64_t{0}), HasSubstr("extents"));
  for (const std::size_t place : {master_at::kFieldsEnd, std::size_t{512}, std::size_t{1024}, std::size_t{2048},
                                  master_at::kTableSize + 4, master_at::kCrc - 1}) {
    EXPECT_THAT(refusal_with(place, std::byte{1}), HasSubstr("not zero")) << place;
  }
}

TEST(FormatMaster, WhatDoesNotFitIsRefusedWhenItIsMade) {
  const auto files = files_of(2);
  const auto layout = make_master_layout(nullptr, files, 0);
  const auto encode = [&](const MasterHead& head, const std::vector<ShardRow>& rows, const Attributes& attributes) {
    return refused_argument([&] { static_cast<void>(encode_master(*layout, head, rows, attributes)); });
  };
  MasterHead head = head_of(2);
  const auto rows = rows_of(files);
  EXPECT_EQ(encode(head, rows, {}), "");
  EXPECT_THAT(encode(head, rows, kAttributes), HasSubstr("new layout"));
  EXPECT_THAT(encode(head, {rows[0]}, {}), HasSubstr("1 rows"));
  EXPECT_THAT(encode(head_of(3), rows, {}), HasSubstr("world size 3"));
  EXPECT_THAT(encode(head, {rows[1], rows[0]}, {}), HasSubstr("was laid out for 'data/0/rank-0.h5'"));
  head.tag.assign(129, 't');
  EXPECT_THAT(encode(head, rows, {}), HasSubstr("tag"));
  head = head_of(2);
  head.run.assign(65, 'r');
  EXPECT_THAT(encode(head, rows, {}), HasSubstr("run"));
}

TEST(FormatMaster, NamesThatContradictEachOtherAreRefused) {
  const auto files = files_of(2);
  const auto layout = [&](const View& view) {
    return refused_argument([&] { static_cast<void>(make_master_layout(&view, files, 0)); });
  };
  const View::Array array{"a/b", DataType::int8, Shape{1}, {{0, Shape{0}, Shape{1}}}};
  View::Array inner = array;
  inner.name = "a";
  EXPECT_THAT(layout({{array, inner}, {}}), HasSubstr("'a'"));
  EXPECT_THAT(layout({{array}, {{"a", 0}}}), HasSubstr("'a'"));
  EXPECT_THAT(layout({{array}, {{"a/b/c", 0}}}), HasSubstr("'a/b'"));
  EXPECT_THAT(layout({{array, array}, {}}), HasSubstr("twice"));
  EXPECT_THAT(layout({{array}, {{"a/b", 0}}}), HasSubstr("twice"));
  EXPECT_THAT(layout({{}, {{"ranks/0", 0}}}), HasSubstr("kept for Kedge"));
  EXPECT_THAT(layout({{}, {{"c", 2}}}), HasSubstr("rank 2"));
  inner.blocks[0].rank = 2;
  EXPECT_THAT(layout({{inner}, {}}), HasSubstr("rank 2"));
  inner.blocks[0] = {0, Shape{1}, Shape{1}};
  EXPECT_THAT(layout({{inner}, {}}), HasSubstr("does not fit"));
  for (const std::string file : {"", "/rank-0.h5", "../rank-0.h5", "a//b", "0123456789012345678901234567890123"}) {
    EXPECT_NE(refused_argument([&] { static_cast<void>(make_master_layout(nullptr, std::vector{file}, 0)); }), "");
  }
  EXPECT_THAT(refused_argument([] { static_cast<void>(make_master_layout(nullptr, {}, 0)); }),
              HasSubstr("0 containers"));
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const View* view, std::uint32_t ranks, double limit_s) {
  const auto files = files_of(ranks);
  const auto rows = rows_of(files);
  std::shared_ptr<const MasterLayout> layout;
  MemoryFile file;
  const double layout_s = seconds([&] { layout = make_master_layout(view, files, 100); });
  const double encode_s = seconds([&] { file.content = encode_master(*layout, head_of(ranks), rows, kAttributes); });
  const double verify_s = seconds([&] { EXPECT_TRUE(reader_of(file).verify().empty()); });
  const double rows_s = seconds([&] { EXPECT_EQ(reader_of(file).rows().size(), ranks); });
  std::printf("%zu arrays, %u ranks: layout %.3f s, encode %.4f s, verify %.4f s, rows %.4f s, %.2f MB\n",
              view == nullptr ? 0 : view->arrays.size(), ranks, layout_s, encode_s, verify_s, rows_s,
              static_cast<double>(file.size()) / 1e6);
  EXPECT_LT(layout_s, limit_s);
  EXPECT_LT(encode_s, limit_s / 10);
}

TEST(FormatMaster, LargeOnesTakeLittleTime) {
  const View view = view_of(1000, 64);
  measure(&view, 64, 10);  // sanitizers and busy machines included
  const View wide = view_of(10, 4096);
  measure(&wide, 4096, 10);
  measure(nullptr, 100000, 20);
}

}  // namespace
}  // namespace kedge::format::testing
