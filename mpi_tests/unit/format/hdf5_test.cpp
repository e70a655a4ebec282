// What HDF5 (1.10.8) does that a container has to live with, limits on files included; each trap is held by a test.
// Readers are tried in interop/.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "format/hdf5_memory.hpp"
#include "format/hdf5_structure.hpp"
#include "unit/format/support.hpp"

namespace kedge::format::testing::hdf5_test {
namespace {

std::uint64_t number_at(const MemoryFile& file, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, file.content.data() + at, sizeof(value));
  return value;
}

TEST(FormatHdf5, RegionsWithoutBytesHaveNoOffset) {
  LayoutBuilder builder;
  EXPECT_EQ(builder.add(sample("zero", 0).spec), 0U) << "HDF5 itself answers 4095";
  EXPECT_EQ(builder.add({"zero of 3-d", DataType::float64, Shape{5, 0, 7}, {}, false}), 0U);
  EXPECT_GE(builder.add(sample("one", 1).spec), kSuperblockBytes);
}

TEST(FormatHdf5, StructsWhosePaddingDiffersAreTwoTypes) {
  Hdf5Scratch scratch(2048);
  const Elements elements{DataType::opaque, "x:float64@0"};
  static_cast<void>(scratch.create_dataset("a", elements, Shape{3, 8}));
  const std::uint64_t padded = scratch.create_dataset("b", elements, Shape{3, 16});
  EXPECT_GE(scratch.create_dataset("c", {DataType::uint8}, Shape{1}), padded + 48);
}

/// In a child, whose limits they are, and whose exit HDF5 takes part in.
[[noreturn]] void make_a_structure_under_limits() {
  constexpr rlimit kFileSize{100U << 10U, 100U << 10U};
  constexpr rlimit kNoFile{0, 0};
  if (::setrlimit(RLIMIT_FSIZE, &kFileSize) != 0 || ::setrlimit(RLIMIT_NOFILE, &kNoFile) != 0) std::exit(1);
  Hdf5Scratch scratch(2048);
  const std::uint64_t large = scratch.create_dataset("large", {DataType::float64}, Shape{1U << 20U});
  scratch.reopen(4096);
  std::exit(scratch.close() >= large + (8U << 20U) ? 0 : 2);
}

TEST(FormatHdf5, NoLimitOnFilesAppliesToAStructure) {
  EXPECT_EXIT(make_a_structure_under_limits(), ::testing::ExitedWithCode(0), "");
}

TEST(FormatHdf5, MemoryIsLikeAFile) {
  SparseMemory memory;
  std::vector<std::byte> file;
  std::mt19937 choose(7);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(choose); };
  for (int i = 0; i < 2000; ++i) {
    const std::size_t at = below(40'000);
    if (below(20) == 0) {
      file.resize(at);
      memory.resize(at);
    } else {
      const std::vector<std::byte> some(below(9000), static_cast<std::byte>(i));
      file.resize(std::max(file.size(), at + some.size()));
      std::ranges::copy(some, file.begin() + static_cast<std::ptrdiff_t>(at));
      memory.write(at, some);
    }
    ASSERT_EQ(memory.size_bytes(), file.size());
    std::vector<std::byte> read(file.size() + 5000, std::byte{1});  // behind the end are zeros
    memory.read(0, read);
    std::vector<std::byte> wanted = file;
    wanted.resize(read.size());
    ASSERT_TRUE(read == wanted) << i;
  }
}

TEST(FormatHdf5, LargeRegionsStartOnPagesAndSmallOnesArePacked) {
  MemoryTarget target;
  std::vector<Sample> samples;
  for (std::uint64_t i = 0; i < 60; ++i)
    samples.push_back(sample(compose("r{}", i), i % 4 == 0 ? 65536 + i : 3 * i + 1));
  const auto layout = write(target, samples);
  std::uint64_t unaligned = 0;
  for (const StoredRegion& region : layout->regions) {
    if (region.size_bytes >= kLargeRegionBytes) {
      EXPECT_EQ(region.offset % kAlignmentBytes, 0U);
    } else {
      unaligned += region.offset % kAlignmentBytes == 0 ? 0 : 1;
    }
  }
  EXPECT_GT(unaligned, 30U);
}

// HDF5 looks for its signature at 0, 512, 1024, 2048, 4096: only the last may be one. Version 2 is that of HDF5 1.8.
TEST(FormatHdf5, OneSignatureOfVersion18BehindTheUserBlock) {
  MemoryTarget target;
  write(target, mixed_samples());
  constexpr std::uint64_t kSignature = 0x0a1a0a0d46444889U;
  for (const std::size_t at : {0U, 512U, 1024U, 2048U}) EXPECT_NE(number_at(target.file, at), kSignature);
  EXPECT_EQ(number_at(target.file, 4096), kSignature);
  EXPECT_EQ(target.file.content[4096 + 8], std::byte{2});
}

// Whoever opens a container read-write through HDF5 cuts off what lies behind HDF5's end of file: nothing may.
TEST(FormatHdf5, TheFileEndsWhereHdf5SaysAndTheIndexLiesBefore) {
  for (const auto& samples : {std::vector<Sample>{}, mixed_samples(), std::vector<Sample>{sample("a", 100000)}}) {
    MemoryTarget target;
    const auto layout = write(target, samples);
    const std::uint64_t base = number_at(target.file, 4096 + 12);
    const std::uint64_t end = number_at(target.file, 4096 + 28);  // of a superblock of version 2
    EXPECT_EQ(base, 4096U);
    EXPECT_EQ(end, target.file.size());
    EXPECT_LE(layout->index_offset + layout->index_capacity_bytes, target.file.size());
    EXPECT_GE(layout->index_capacity_bytes, layout->index_size());
  }
}

TEST(FormatHdf5, MetadataDoesNotDependOnTime) {
  const auto samples = mixed_samples();
  MemoryTarget one;
  write(one, samples);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 counts whole seconds
  MemoryTarget two;
  write(two, samples);
  EXPECT_TRUE(one.file.content == two.file.content);
}

TEST(FormatHdf5, MetadataOfALargeStructureStaysInFewPlaces) {
  std::size_t before = 0;
  for (const std::uint64_t count : {10U, 100U, 1000U, 10000U}) {
    LayoutBuilder builder;
    for (std::uint64_t i = 0; i < count; ++i) builder.add(sample(compose("name{}", i), i % 2 == 0 ? 65536 : 8).spec);
    const auto layout = builder.finish();
    EXPECT_LE(layout->table.size(), before + 10) << "grows with the logarithm only";
    before = layout->table.size();
  }
  EXPECT_LE(before, 40U);
}

herr_t count_errors(hid_t /*stack*/, void* count) {
  ++*static_cast<int*>(count);
  return 0;
}

TEST(FormatHdf5, TheApplicationsErrorSettingIsRestored) {
  H5E_auto2_t old = nullptr;
  void* old_data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &old, &old_data);
  int errors = 0;
  H5Eset_auto2(H5E_DEFAULT, count_errors, &errors);
  {
    LayoutBuilder builder;
    builder.add(sample("a", 10).spec);
    // More than a file can hold: HDF5 fails, Kedge throws, the application's handler hears nothing.
    EXPECT_THROW(builder.add({"b", DataType::int8, Shape{(std::uint64_t{1} << 63U) - 1}, {}, false}), Error);
  }
  EXPECT_EQ(errors, 0);
  H5E_auto2_t now = nullptr;
  void* now_data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &now, &now_data);
  EXPECT_EQ(now, &count_errors);
  EXPECT_EQ(now_data, &errors);
  H5Dclose(-1);
  EXPECT_EQ(errors, 1);
  H5Eset_auto2(H5E_DEFAULT, old, old_data);
}

TEST(FormatHdf5, NothingStaysOpen) {
  {
    LayoutBuilder builder;
    builder.add(sample("a/b", 10).spec);
    builder.add({"c", DataType::complex64, Shape{}, {}, false});
  }
  EXPECT_EQ(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL), 0);
}

TEST(FormatHdf5, AnotherLibraryVersionIsAnErrorNotAnAbort) {
  EXPECT_NO_THROW(check_hdf5_version({1, 10, 8}, {1, 10, 8}));
  try {
    check_hdf5_version({1, 10, 8}, {1, 14, 3});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_state);
    EXPECT_NE(error.failure().message.find("1.14.3"), std::string::npos);
  }
}

// A layout of terabytes takes no memory and no time: the scratch file is sparse.
TEST(FormatHdf5, StructureOfAHugeContainerCostsNothing) {
  LayoutBuilder builder;
  builder.add({"huge", DataType::float64, Shape{std::uint64_t{1} << 38U}, {}, false});
  builder.add(sample("small", 10).spec);
  const auto layout = builder.finish();
  EXPECT_GT(layout->file_size, std::uint64_t{1} << 41U);
  std::uint64_t metadata_bytes = 0;
  for (const MetadataExtent& extent : layout->metadata) metadata_bytes += extent.bytes.size();
  EXPECT_LT(metadata_bytes, 100000U);
}

}  // namespace
}  // namespace kedge::format::testing::hdf5_test
