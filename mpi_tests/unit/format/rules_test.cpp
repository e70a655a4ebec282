// Names, shapes, superblocks and indexes that cannot be are refused, also when another program made them on purpose.
#include <gtest/gtest.h>

#include <limits>

#include "format/index.hpp"
#include "unit/format/support.hpp"

namespace kedge::format::testing::rules_test {
namespace {

bool accepted(std::string name) {
  return !check_region_spec({std::move(name), DataType::int8, Shape{1}, {}, false}).has_value();
}

TEST(FormatRules, RegionNames) {
  for (const char* name : {"a", "a/b", "temperature [K]", "...", "a/..b", "kedge", "x/.kedge", "x/ranks", "ranksx",
                           "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x9a\xa2"}) {
    EXPECT_TRUE(accepted(name)) << name;
  }
  for (const char* name : {"", "/", "/a", "a/", "a//b", ".", "..", "a/.", "a/../b", ".kedge", ".kedge/x", "ranks",
                           "ranks/0", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
    EXPECT_FALSE(accepted(name)) << name;
  }
  EXPECT_FALSE(accepted(std::string("a\0b", 3)));
  EXPECT_TRUE(accepted(std::string(kNameBytesMax, 'x')));
  EXPECT_FALSE(accepted(std::string(kNameBytesMax + 1, 'x')));
}

TEST(FormatRules, TypesShapesAndShards) {
  const auto refused = [](DataType dtype, Shape shape, const Placement& placement = {}) {
    return check_region_spec({"a", dtype, shape, placement, false}).has_value();
  };
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(refused(DataType::float64, Shape{0, kHuge, kHuge})) << "no elements, no overflow";
  EXPECT_TRUE(refused(static_cast<DataType>(0), Shape{1}));
  EXPECT_FALSE(refused(kLastDataType, Shape{1}));
  EXPECT_TRUE(refused(static_cast<DataType>(static_cast<int>(kLastDataType) + 1), Shape{1}));
  EXPECT_TRUE(refused(DataType::int8, Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(refused(DataType::int8, Shape{kHuge, 2}));
  EXPECT_TRUE(refused(DataType::int16, Shape{std::uint64_t{1} << 62U}));
  EXPECT_FALSE(refused(DataType::int8, Shape{2, 3}, Shard{{4, 3}, {2, 0}}));
  EXPECT_TRUE(refused(DataType::int8, Shape{2, 3}, Shard{{4, 3}, {3, 0}})) << "beyond the global array";
  EXPECT_TRUE(refused(DataType::int8, Shape{2, 3}, Shard{{4, 3}, {kHuge, 0}}));
  EXPECT_TRUE(refused(DataType::int8, Shape{2, 3}, Shard{{4}, {2}})) << "other dimensions";
  EXPECT_TRUE(refused(DataType::int8, Shape{2, 3}, Shard{{4, 3}, {2}}));
  EXPECT_TRUE(refused(DataType::int8, Shape{1}, Shard{{1, 1, 1, 1, 1, 1, 1, 1, 1}, {0}}));
}

TEST(FormatRules, NoNameIsAlsoAGroup) {
  const auto together = [](const char* first, const char* second) {
    MemoryTarget target;
    ContainerWriter writer(target, nullptr);
    writer.add(sample(first, 8).spec, sample(first, 8).bytes);
    writer.add(sample(second, 8).spec, sample(second, 8).bytes);
  };
  EXPECT_NO_THROW(together("a/b", "a/c"));
  EXPECT_NO_THROW(together("a", "ab/c"));
  for (const auto& [first, second] :
       {std::pair{"a", "a/b"}, {"a/b", "a"}, {"a/b", "a/b/c"}, {"a/b/c", "a/b"}, {"a", "a"}}) {
    try {
      together(first, second);
      ADD_FAILURE() << first << " and " << second;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

TEST(FormatRules, BytesMustBeAsManyAsTheShapeSays) {
  MemoryTarget target;
  ContainerWriter writer(target, nullptr);
  const std::vector<std::byte> bytes(7);
  EXPECT_THROW(writer.add({"a", DataType::int64, Shape{1}, {}, false}, bytes), Error);
}

Superblock full_superblock() {
  Superblock superblock = identity();
  superblock.is_sealed = true;
  superblock.file_size = 100000;
  superblock.index_offset = 20480;
  superblock.index_size = 50;
  superblock.index_crc = 9;
  superblock.extents = {{ExtentKind::metadata, 1, 4096, 1000}, {ExtentKind::index, 2, 20480, 4096}};
  return superblock;
}

std::string refusal(const SuperblockBytes& bytes) {
  try {
    static_cast<void>(decode_superblock(bytes, "path"));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    return error.failure().message;
  }
}

void fix_checksum(SuperblockBytes& bytes) {
  const std::uint32_t crc = crc32c(std::span(bytes).first(at::kCrc));
  std::memcpy(bytes.data() + at::kCrc, &crc, 4);
}

TEST(FormatSuperblock, ComesBackAndKeepsSignaturePositionsZero) {
  Superblock superblock = full_superblock();
  superblock.commit.tag = std::string(kTagBytesMax, 't');
  superblock.extents.clear();
  for (std::uint64_t i = 0; i < kTableEntriesMax; ++i) {
    superblock.extents.push_back({i == 3 ? ExtentKind::index : ExtentKind::metadata, 0xffffffffU, 5000 + i * 100, 100});
  }
  superblock.index_offset = 5300;
  const SuperblockBytes bytes = encode_superblock(superblock);
  EXPECT_EQ(decode_superblock(bytes, "path"), superblock);
  for (const std::size_t at : {512U, 1024U, 2048U}) {
    for (std::size_t i = at; i < at + 8; ++i) EXPECT_EQ(bytes[i], std::byte{0}) << i;
  }
  superblock.extents.emplace_back();
  EXPECT_THROW(static_cast<void>(encode_superblock(superblock)), Error);
  superblock.extents.clear();
  superblock.commit.tag += 't';
  EXPECT_THROW(static_cast<void>(encode_superblock(superblock)), Error);
}

TEST(FormatSuperblock, SaysWhatIsWrong) {
  SuperblockBytes bytes{};
  EXPECT_TRUE(is_unsealed(bytes));
  EXPECT_NE(refusal(bytes).find("not a sealed"), std::string::npos);
  bytes = encode_superblock(full_superblock());
  EXPECT_FALSE(is_unsealed(bytes));
  bytes[0] = std::byte{'X'};
  EXPECT_NE(refusal(bytes).find("not a Kedge container"), std::string::npos);
  bytes = encode_superblock(full_superblock());
  bytes[at::kTimeNs] ^= std::byte{1};
  EXPECT_NE(refusal(bytes).find("checksum"), std::string::npos);
  bytes = encode_superblock(full_superblock());
  bytes[at::kVersion] = std::byte{7};
  fix_checksum(bytes);
  EXPECT_EQ(refusal(bytes), "format version 7 is newer than the one this Kedge reads (1); use a newer Kedge");
  EXPECT_THROW(static_cast<void>(decode_superblock(std::span(bytes).first(4095), "path")), Error);
}

TEST(FormatSuperblock, ContradictionsAreRefused) {
  const auto refused = [](auto&& change) {
    Superblock superblock = full_superblock();
    change(superblock);
    return !refusal(encode_superblock(superblock)).empty();
  };
  EXPECT_FALSE(refused([](Superblock&) {}));
  EXPECT_TRUE(refused([](Superblock& s) { s.is_sealed = false; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.file_size = 20000; })) << "index beyond the end";
  EXPECT_TRUE(refused([](Superblock& s) { s.index_offset = 4096; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.index_size = 4097; }));
  for (const bool too_large : {false, true}) {
    const auto grow = [&](Superblock& s) {
      s.extents.back().length = s.index_size = kIndexBytesMax + (too_large ? 1 : 0);
      s.file_size = s.index_offset + s.index_size;
    };
    EXPECT_EQ(refused(grow), too_large);
  }
  EXPECT_TRUE(refused([](Superblock& s) { s.extents.pop_back(); })) << "no index";
  EXPECT_TRUE(refused([](Superblock& s) { s.extents[0].kind = ExtentKind::index; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.extents[0].kind = ExtentKind::data; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.extents[0].offset = 0; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.extents[0].length = 0; }));
  EXPECT_TRUE(refused([](Superblock& s) { s.extents[0].length = std::numeric_limits<std::uint64_t>::max(); }));
  EXPECT_TRUE(refused([](Superblock& s) { std::swap(s.extents[0], s.extents[1]); }));
  EXPECT_TRUE(refused([](Superblock& s) { s.extents[0].length = 20000; })) << "overlap";
}

class HostileIndex : public ::testing::Test {
 protected:
  HostileIndex() {
    MemoryTarget target;
    layout = write(target, {sample("a", 100),
                            sample({"b/c", DataType::float64, Shape{100, 100}, Shard{{200, 100}, {100, 0}}, false}),
                            sample("e", 0), sample({"d", DataType::int8, Shape{}, Replicated{}, false})});
    index.resize(layout->index_size());
    static_cast<void>(target.file.read_with_crc(layout->index_offset, index, 0));
  }
  std::string refusal_of(std::span<const std::byte> bytes) {
    try {
      static_cast<void>(decode_index(bytes, layout->table, layout->file_size, "path"));
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      return error.failure().message;
    }
  }
  std::shared_ptr<const Layout> layout;
  std::vector<std::byte> index;
};

TEST_F(HostileIndex, IsRefusedAtEveryTruncation) {
  EXPECT_EQ(refusal_of(index), "");
  for (std::size_t size = 0; size < index.size(); ++size)
    EXPECT_NE(refusal_of(std::span(index).first(size)), "") << size;
  index.push_back(std::byte{0});
  EXPECT_NE(refusal_of(index), "");
}

// Every byte takes every value: refused or harmless, never a crash (and clean under the sanitizers).
TEST_F(HostileIndex, NeverCrashes) {
  for (std::size_t i = 0; i < layout->index_head.size(); ++i) {
    for (unsigned value = 0; value < 256; ++value) {
      auto changed = index;
      changed[i] = static_cast<std::byte>(value);
      static_cast<void>(refusal_of(changed));
    }
  }
  std::mt19937 random(7);
  for (int trial = 0; trial < 20000; ++trial) {
    auto changed = index;
    for (int k = 0; k < 4; ++k) changed[random() % changed.size()] = static_cast<std::byte>(random());
    static_cast<void>(refusal_of(changed));
  }
}

TEST_F(HostileIndex, NestsAndPromisesInVain) {
  EXPECT_NE(refusal_of(std::vector<std::byte>(1U << 20U, std::byte{0x81})), "") << "arrays in arrays";
  EXPECT_NE(refusal_of(std::vector<std::byte>(1U << 20U, std::byte{0x7f})), "") << "texts in texts";
  std::vector<std::byte> huge{std::byte{0x84}, std::byte{1}, std::byte{0x9b}};
  huge.resize(11, std::byte{0xff});
  EXPECT_NE(refusal_of(huge), "") << "an array of 2^64 - 1";
}

// As a Kedge finds it that is older than the data type.
TEST_F(HostileIndex, AnUnknownDataTypeIsRefusedByItsNumber) {
  constexpr std::size_t kAt = 2 + 5 + 1 + 2;  // after the heads of index, regions and region, and the name "a"
  ASSERT_EQ(index[kAt], static_cast<std::byte>(DataType::uint8));
  constexpr unsigned kLast = static_cast<unsigned>(kLastDataType);
  for (const unsigned number : {0U, kLast + 1, 255U, 256 + kLast}) {
    const std::array bytes{std::byte{0x19}, static_cast<std::byte>(number >> 8U), static_cast<std::byte>(number)};
    std::vector<std::byte> changed(index.begin(), index.begin() + kAt);
    changed.insert(changed.end(), bytes.begin(), bytes.end());
    changed.insert(changed.end(), index.begin() + kAt + 1, index.end());
    EXPECT_EQ(refusal_of(changed),
              compose("the index cannot be used: region 'a' has data type {}, which this Kedge does "
                      "not know; use the Kedge that wrote it",
                      number));
  }
}

TEST_F(HostileIndex, RegionsMayNotOverlapOrLieElsewhere) {
  const auto refused = [&](auto&& change) {
    RegionMap map = *layout;
    change(map);
    std::vector<std::byte> bytes = encode_index_head(map);
    bytes.insert(bytes.end(), index.end() - static_cast<std::ptrdiff_t>(4 * layout->checksum_count), index.end());
    return !refusal_of(bytes).empty();
  };
  EXPECT_FALSE(refused([](RegionMap&) {}));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[0].offset += 1; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[0].offset = map.regions[1].offset; }));
  EXPECT_TRUE(refused([&](RegionMap& map) { map.regions[0].offset = layout->index_offset; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[0].offset = 0; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[0].offset = std::numeric_limits<std::uint64_t>::max() - 10; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[0].size_bytes = 99; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[2].offset = 5000; })) << "an empty one has no place";
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[3].spec.name = "a"; })) << "two of one name";
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions[3].spec.name = "../a"; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.regions.pop_back(); }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.data_extents[0].length += 1; }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.data_extents.pop_back(); }));
  EXPECT_TRUE(refused([](RegionMap& map) { map.checksum_count -= 1; }));
}

}  // namespace
}  // namespace kedge::format::testing::rules_test
