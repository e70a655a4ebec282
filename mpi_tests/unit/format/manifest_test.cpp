// Manifests: round trip, every bit guarded, contradictions refused, and the bytes themselves. What h5py sees of them is
// tried in interop/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "format/fields.hpp"
#include "format/manifest_rows.hpp"
#include "unit/format/manifest_support.hpp"

namespace kedge::format::testing::manifest_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  put_field(file.content, manifest_at::kCrc, crc32c(std::span<const std::byte>(file.content).first(manifest_at::kCrc)));
}

template <class T>
std::string refusal_with(std::size_t place, const T& value, ErrorCode code = ErrorCode::corrupt) {
  MemoryFile file = manifest_of(2);
  put_field(file.content, place, value);
  reseal(file);
  return refusal(file, code);
}

TEST(FormatManifest, IsReadAsItWasWritten) {
  for (const std::uint32_t ranks : {1U, 2U, 100U}) {
    MemoryFile file = manifest_of(ranks);
    const ManifestReader reader = reader_of(file);
    ManifestHead head = head_of(ranks);
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

TEST(FormatManifest, WithoutAttributesOrViewThereIsLess) {
  MemoryFile none = manifest_of(2, {});
  EXPECT_EQ(reader_of(none).head().attributes_offset, 0U);
  EXPECT_TRUE(reader_of(none).attributes().empty());
  const auto files = files_of(3);
  const auto layout = make_manifest_layout(nullptr, files, {{std::string("a\0b", 3), 1.5}});  // HDF5 cannot show it
  MemoryFile file;
  file.content = encode_manifest(*layout, head_of(3), rows_of(files), {});
  EXPECT_FALSE(reader_of(file).head().has_view);
  EXPECT_TRUE(reader_of(file).attributes().empty()) << "{} of room for more";
  EXPECT_TRUE(reader_of(file).verify().empty());
}

TEST(FormatManifest, EveryFlippedBitOfTheHeadIsRefused) {
  MemoryFile file = manifest_of(2);
  for (std::size_t bit = 0; bit < kSuperblockBytes * 8; ++bit) {
    file.content[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(refusal(file), "") << "bit " << bit;
    file.content[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_EQ(refusal(file), "");
}

TEST(FormatManifest, EveryFlippedByteIsFoundByVerify) {
  MemoryFile file = manifest_of(2);
  const ManifestReader reader = reader_of(file);
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

TEST(FormatManifest, ADamagedRowIsNamedAndTheOthersAreRead) {
  MemoryFile file = manifest_of(3);
  const ManifestReader reader = reader_of(file);
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

TEST(FormatManifest, ARowOfAnotherCommitIsRefused) {
  const auto files = files_of(2);
  const auto layout = make_manifest_layout(nullptr, files, {});
  ManifestHead other = head_of(2);
  other.commit.id.bytes.fill(9);
  MemoryFile file(encode_manifest(*layout, head_of(2), rows_of(files), {}));
  const auto foreign = encode_manifest(*layout, other, rows_of(files), {});
  const std::uint64_t row = reader_of(file).head().table_offset + kShardRowBytes;
  std::memcpy(file.content.data() + row, foreign.data() + row, kShardRowBytes);
  EXPECT_NO_THROW(static_cast<void>(reader_of(file).row(LogicalRank{0})));
  EXPECT_THROW(static_cast<void>(reader_of(file).row(LogicalRank{1})), Error);
  ASSERT_EQ(reader_of(file).verify().size(), 1U);
  EXPECT_THAT(reader_of(file).verify()[0].description, HasSubstr("row of rank 1"));
}

TEST(FormatManifest, RowsThatLeadOutsideAreRefused) {
  const auto refusal_of = [](const ShardRow& row, const std::function<void(std::span<std::byte>)>& change = {}) {
    std::array<std::byte, kShardRowBytes> bytes{};
    const RowIdentity place{head_of(8).commit.id, LogicalRank{7}};
    encode_row(row, place, bytes);
    if (change) change(bytes);
    put_field(bytes, row_at::kRowCrc, row_crc(bytes, place));
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
    EXPECT_THAT(refusal_of(good, put_name), HasSubstr("rank 7 is invalid")) << name;
  }
  EXPECT_NE(refusal_of(good, [](auto bytes) { bytes[0] = std::byte{0}; }), "") << "something behind the name";
  ShardRow outside = good;
  ++outside.index_size;
  EXPECT_THAT(refusal_of(outside), HasSubstr("outside"));
  outside.index_offset = ~std::uint64_t{0};
  EXPECT_THAT(refusal_of(outside), HasSubstr("outside"));
  // The superblock is read as such, and as nothing else.
  EXPECT_THAT(refusal_of({"data/0/rank-7.h5", 100000, 4095, 91808, 1, 2}), HasSubstr("outside"));
  EXPECT_THAT(refusal_of({"data/0/rank-7.h5", 4095, 4095, 0, 1, 2}), HasSubstr("outside"));
}

TEST(FormatManifest, WhatIsNoneOrUnfinishedIsRefused) {
  MemoryFile file = manifest_of(2);
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
  EXPECT_THAT(refusal_with(manifest_at::kMagic, kMagic), HasSubstr("bad magic number")) << "a container";
  EXPECT_THAT(refusal_with(manifest_at::kMagic, kSetMagic), HasSubstr("bad magic number")) << "a set's description";
  EXPECT_THAT(refusal_with(manifest_at::kSealed, std::uint32_t{0}), HasSubstr("sealed flag"));
  EXPECT_THAT(refusal_with(manifest_at::kVersion, std::uint32_t{0}, ErrorCode::mismatch), HasSubstr("older"));
}

TEST(FormatManifest, ANewerVersionIsRefusedByName) {
  EXPECT_THAT(refusal_with(manifest_at::kVersion, kManifestVersion + 1, ErrorCode::mismatch),
              AllOf(HasSubstr("version 2"), HasSubstr("newer Kedge")));
}

TEST(FormatManifest, FieldsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refusal_with(manifest_at::kWorldSize, std::uint32_t{3}), HasSubstr("shard table"));
  EXPECT_THAT(refusal_with(manifest_at::kWorldSize, std::uint32_t{0}), HasSubstr("invalid world size 0"));
  EXPECT_THAT(refusal_with(manifest_at::kHasView, std::uint32_t{2}), HasSubstr("view"));
  EXPECT_THAT(refusal_with(manifest_at::kFileSize, ~std::uint64_t{0}), HasSubstr("file size"));
  EXPECT_THAT(refusal_with(manifest_at::kFileSize, std::uint64_t{4096}), HasSubstr("extents"));
  EXPECT_THAT(refusal_with(manifest_at::kShardsOffset, std::uint64_t{4096}), HasSubstr("shard table"));
  EXPECT_THAT(refusal_with(manifest_at::kAttributesOffset, std::uint64_t{0}), HasSubstr("attributes"));
  EXPECT_THAT(refusal_with(manifest_at::kAttributesOffset, std::uint64_t{4096}), HasSubstr("attributes"));
  EXPECT_THAT(refusal_with(manifest_at::kAttributesSize, std::uint64_t{513}), HasSubstr("attributes"));
  EXPECT_THAT(refusal_with(manifest_at::kTagSize, std::uint32_t{129}), HasSubstr("tag"));
  EXPECT_THAT(refusal_with(manifest_at::kTagSize, std::uint32_t{3}), HasSubstr("tag"));
  EXPECT_THAT(refusal_with(manifest_at::kRunSize, ~std::uint32_t{0}), HasSubstr("run"));
  EXPECT_THAT(refusal_with(manifest_at::kTableSize, std::uint32_t{85}), HasSubstr("extents"));
  EXPECT_THAT(refusal_with(manifest_at::kTableSize, std::uint32_t{1}), HasSubstr("extents"));
  EXPECT_THAT(refusal_with(manifest_at::kTable, std::uint32_t{9}), HasSubstr("kind 9"));
  EXPECT_THAT(refusal_with(manifest_at::kTable + 16, ~std::uint64_t{0}), HasSubstr("extents"));
  for (const std::size_t place : {manifest_at::kFieldsEnd, std::size_t{512}, std::size_t{1024}, std::size_t{2048},
                                  manifest_at::kTableSize + 4, manifest_at::kCrc - 1}) {
    EXPECT_THAT(refusal_with(place, std::byte{1}), HasSubstr("not zero")) << place;
  }
}

}  // namespace
}  // namespace kedge::format::testing::manifest_test
