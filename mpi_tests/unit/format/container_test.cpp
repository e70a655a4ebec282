// Containers: round trips; every byte of a small one is guarded, truncation and growth are found.
#include <gtest/gtest.h>

#include "format/hdf5_structure.hpp"
#include "unit/format/support.hpp"

namespace kedge::format::testing::container_test {
namespace {

TEST(FormatContainer, AllTypesAndNumbersOfDimensionsComeBack) {
  std::vector<Sample> samples;
  for (std::uint8_t type = 1; type <= static_cast<std::uint8_t>(kLastDataType); ++type) {
    for (std::size_t dimensions = 0; dimensions <= Shape::kMaxDimensions; ++dimensions) {
      const std::vector<std::uint64_t> extents(dimensions, 2);
      samples.push_back(
          sample({compose("t{}/d{}", type, dimensions), static_cast<DataType>(type), Shape(extents), {}, false}));
    }
    samples.push_back(sample({compose("t{}/empty", type), static_cast<DataType>(type), Shape{3, 0}, {}, false}));
  }
  MemoryTarget target;
  write(target, samples);
  EXPECT_EQ(problem(target.file, samples), "");
}

TEST(FormatContainer, StructureIsStoredWithTheData) {
  const auto samples = mixed_samples();
  MemoryTarget target;
  write(target, samples);
  EXPECT_EQ(problem(target.file, samples), "");
  const ContainerReader reader(target.file, target.file.size(), "file");
  Superblock expected = identity();
  const Superblock& stored = reader.superblock();
  EXPECT_EQ(stored.commit, expected.commit);
  EXPECT_EQ(stored.commit.generation, 4U);
  EXPECT_EQ(stored.commit.incarnation, 5U);
  EXPECT_EQ(stored.logical_rank.value, 6U);
  EXPECT_EQ(stored.commit.world_size, 7U);
  EXPECT_EQ(stored.commit.time_ns, 8);
  EXPECT_TRUE(stored.is_sealed);
  ASSERT_EQ(reader.regions().size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(reader.regions()[i].spec, samples[i].spec) << "order of saving";
}

TEST(FormatContainer, AnEmptyOneWorks) {
  MemoryTarget target;
  write(target, {});
  EXPECT_EQ(problem(target.file, {}), "");
  EXPECT_LE(target.file.size(), 64U * 1024) << "small containers stay small";
}

TEST(FormatContainer, EveryByteOfASmallOneIsGuarded) {
  const std::vector<Sample> samples{sample("a", 100), sample("b/c", 5000), sample("d", 65537), sample("e", 0)};
  MemoryTarget target;
  write(target, samples);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < target.file.content.size(); ++i) {
    const std::byte old = target.file.content[i];
    target.file.content[i] ^= static_cast<std::byte>(1U << random() % 8);
    bool detected = false;
    try {
      detected = !ContainerReader(target.file, target.file.size(), "file").verify().empty();
    } catch (const Error& error) {
      detected = error.code() == ErrorCode::corrupt;
    }
    ASSERT_TRUE(detected) << "byte " << i;
    target.file.content[i] = old;
  }
  EXPECT_EQ(problem(target.file, samples), "");
}

// One bit in each class of bytes: what verify calls it, and that the damage does not reach further.
TEST(FormatContainer, DamageIsNamed) {
  const auto samples = mixed_samples();
  MemoryTarget target;
  const auto layout = write(target, samples);
  ContainerReader reader(target.file, target.file.size(), "file");
  const auto named = [&](std::uint64_t at) {
    target.file.content[at] ^= std::byte{16};
    const auto damages = reader.verify();
    target.file.content[at] ^= std::byte{16};
    return damages.size() == 1 ? damages[0].description : compose("{} damages", damages.size());
  };
  EXPECT_EQ(named(70), "superblock");
  EXPECT_EQ(named(layout->index_offset + 20), "index");
  EXPECT_EQ(named(layout->index_offset + layout->index_capacity_bytes - 1), "index");
  EXPECT_EQ(named(kSuperblockBytes + 30), "HDF5 metadata");
  for (const Sample& one : samples) {
    const StoredRegion* region = reader.find_region(one.spec.name);
    if (region->size_bytes == 0) continue;
    EXPECT_EQ(named(region->offset), compose("region '{}'", one.spec.name));
    EXPECT_EQ(named(region->offset + region->size_bytes - 1), compose("region '{}'", one.spec.name));
    target.file.content[region->offset] ^= std::byte{1};
    std::vector<std::byte> bytes(region->size_bytes);
    try {
      reader.read(*region, bytes);
      ADD_FAILURE() << one.spec.name << " was read damaged";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      EXPECT_NE(error.failure().message.find(one.spec.name), std::string::npos);
      EXPECT_EQ(error.failure().path, "file");
    }
    target.file.content[region->offset] ^= std::byte{1};
  }
  std::size_t paddings = 0;
  for (const DataExtent& extent : layout->data_extents) {
    const std::uint64_t last = extent.offset + extent.length - 1;
    const StoredRegion& region = layout->regions[layout->by_offset[extent.first_region + extent.region_count - 1]];
    if (region.offset + region.size_bytes > last) continue;
    ++paddings;
    EXPECT_EQ(named(last), extent.is_large ? compose("region '{}'", region.spec.name) : "padding between regions");
  }
  EXPECT_GT(paddings, 0U);
}

TEST(FormatContainer, ALaterBlockIsGuardedOnItsOwn) {
  const std::vector<Sample> samples{sample("blocks", 2 * kBlockBytes + 100)};
  MemoryTarget target;
  const auto layout = write(target, samples);
  target.file.content[layout->regions[0].offset + kBlockBytes + 5] ^= std::byte{1};
  const ContainerReader reader(target.file, target.file.size(), "file");
  const auto damages = reader.verify();
  ASSERT_EQ(damages.size(), 1U);
  EXPECT_EQ(damages[0].offset, layout->regions[0].offset + kBlockBytes);
  EXPECT_EQ(damages[0].length, kBlockBytes);
}

TEST(FormatContainer, TruncationAtEveryPageAndGrowthAreFound) {
  MemoryTarget target;
  write(target, {sample("a", 300000), sample("b", 100)});
  const auto whole = target.file.content;
  const auto expect_refused = [&] {
    EXPECT_THROW(ContainerReader(target.file, target.file.size(), "file"), Error) << target.file.size();
  };
  for (std::size_t size = 0; size < whole.size(); size += 4096) {
    target.file.content.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    expect_refused();
  }
  target.file.content.assign(whole.begin(), whole.end() - 1);
  expect_refused();
  target.file.content = whole;
  target.file.content.push_back(std::byte{0});
  expect_refused();
}

TEST(FormatContainer, WithoutItsSealItIsNone) {
  MemoryTarget target;
  ContainerWriter writer(target, nullptr);
  writer.add(sample("a", 10).spec, sample("a", 10).bytes);
  EXPECT_THROW(writer.seal(identity()), Error) << "before finish";
  static_cast<void>(writer.finish());
  EXPECT_TRUE(is_unsealed(std::span(target.file.content).first(kSuperblockBytes)));
  EXPECT_THROW(ContainerReader(target.file, target.file.size(), "file"), Error);
  EXPECT_EQ(writer.container_bytes(), target.file.size());
  writer.seal(identity());
  EXPECT_EQ(problem(target.file, {sample("a", 10)}), "");
}

TEST(FormatContainer, VerifyReportsAllBytesAsProgress) {
  MemoryTarget target;
  write(target, mixed_samples());
  std::uint64_t seen = 0;
  EXPECT_TRUE(
      ContainerReader(target.file, target.file.size(), "file").verify([&](std::uint64_t n) { seen += n; }).empty());
  EXPECT_EQ(seen, target.file.size());
}

TEST(FormatContainer, ReadingMakesNoHdf5Call) {
  const auto samples = mixed_samples();
  MemoryTarget target;
  write(target, samples);
  const auto before = hdf5_call_count();
  EXPECT_EQ(problem(target.file, samples), "");
  EXPECT_EQ(hdf5_call_count(), before);
}

TEST(FormatContainer, LoadingIntoMemoryOfAnotherSizeIsRefused) {
  MemoryTarget target;
  write(target, {sample("a", 10)});
  const ContainerReader reader(target.file, target.file.size(), "file");
  std::vector<std::byte> nine(9);
  EXPECT_THROW(reader.read(*reader.find_region("a"), nine), Error);
  EXPECT_EQ(reader.find_region("b"), nullptr);
}

TEST(FormatContainer, FiveThousandRegionsOfMixedSize) {
  std::vector<Sample> samples;
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t size = i % 500 == 7 ? 65536 + random() % 40000 : random() % (i % 10 == 0 ? 9000 : 60);
    samples.push_back(sample(compose("group{}/region{}", i % 37, i), size));
  }
  MemoryTarget target;
  const auto layout = write(target, samples);
  EXPECT_EQ(problem(target.file, samples), "");
  EXPECT_LE(layout->table.size(), 40U);
  RecordProperty("extents", static_cast<int>(layout->table.size()));
}

// Names of the greatest length in groups of their own make the most metadata per region.
TEST(FormatContainer, DeepNamesDoNotOverflowTheTable) {
  std::vector<Sample> samples;
  for (int i = 0; i < 6; ++i) {
    std::string name = std::to_string(i);
    while (name.size() + 2 <= kNameBytesMax) name += "/g";
    samples.push_back(sample(name, i % 3 == 0 ? 70000 : 10));
  }
  MemoryTarget target;
  const auto layout = write(target, samples);
  EXPECT_EQ(problem(target.file, samples), "");
  EXPECT_LE(layout->table.size(), 60U);
}

TEST(FormatContainer, TheWholeFilesChecksumIsKnownWithoutReadingIt) {
  std::vector<Sample> many;
  many.reserve(500);
  for (int i = 0; i < 500; ++i) many.push_back(sample(compose("r{}", i), i % 50 == 7 ? 70000 : std::uint64_t(i)));
  const std::vector<std::vector<Sample>> cases = {
      {},   {sample("empty", 0)},         mixed_samples(),
      many, {sample("one", kBlockBytes)}, {sample("two", 2 * kBlockBytes + 1)}};
  for (const auto& samples : cases) {
    std::shared_ptr<const Layout> layout;
    for (const std::uint64_t dirty_bytes : {0U, 20'000'000U}) {  // new; then used again, its layout predicted
      MemoryTarget target(dirty_bytes);
      layout = write(target, samples, layout);
      const ContainerReader reader(target.file, target.file.size(), "file");
      const std::uint32_t before = reader.file_crc();
      EXPECT_EQ(before, crc32c(target.file.content)) << samples.size() << " regions";
      // What it should be, not what it is.
      target.file.content.back() ^= std::byte{1};
      EXPECT_EQ(reader.file_crc(), before);
    }
  }
}

}  // namespace
}  // namespace kedge::format::testing::container_test
