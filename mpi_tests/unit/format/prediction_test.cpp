// The second container of a structure: no HDF5 call; a structure that changed comes out right.
#include <gtest/gtest.h>

#include <thread>

#include "format/hdf5_structure.hpp"
#include "unit/format/support.hpp"

namespace kedge::format::testing::prediction_test {
namespace {

std::vector<Sample> numbered(int count) {
  std::vector<Sample> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    samples.push_back(sample(compose("r{}", i), i % 3 == 1 ? 66000 + 100 * static_cast<std::uint64_t>(i) : 40));
  }
  return samples;
}

/// Writes `next` over a container of `first`, predicted by it, and compares with one made from nothing.
void expect_right_after(const std::vector<Sample>& first, const std::vector<Sample>& next,
                        bool same_places_as_fresh = true) {
  MemoryTarget target;
  const auto layout = write(target, first);
  std::fill(target.file.content.begin(), target.file.content.end(), std::byte{0xdb});
  std::fill_n(target.file.content.begin(), kSuperblockBytes, std::byte{0});
  write(target, next, layout);
  EXPECT_EQ(problem(target.file, next), "");
  MemoryTarget fresh;
  write(fresh, next);
  if (same_places_as_fresh) {
    EXPECT_TRUE(target.file.content == fresh.file.content) << "a recycled file differs from a fresh one";
  }
}

TEST(FormatPrediction, SameStructureMakesNoHdf5CallAndNoReserveByRegion) {
  const auto samples = mixed_samples();
  MemoryTarget target;
  const auto layout = write(target, samples);
  const auto before = hdf5_call_count();
  std::fill_n(target.file.content.begin(), kSuperblockBytes, std::byte{0});
  target.reserve_calls = 0;
  EXPECT_EQ(write(target, samples, layout), layout);
  EXPECT_EQ(hdf5_call_count(), before);
  EXPECT_LE(target.reserve_calls, 2);
  EXPECT_EQ(problem(target.file, samples), "");
}

TEST(FormatPrediction, RecycledFileIsByteIdenticalToAFreshOne) { expect_right_after(mixed_samples(), mixed_samples()); }

TEST(FormatPrediction, ShapeChangedFirstMiddleLast) {
  for (const std::size_t changed : {0U, 5U, 9U}) {
    for (const std::uint64_t size : {0U, 1U, 41U, 65536U, 90000U}) {
      const auto first = numbered(10);
      auto next = first;
      next[changed] = sample(next[changed].spec.name, size);
      expect_right_after(first, next);
    }
  }
}

TEST(FormatPrediction, TypeNameOrPlacementChanged) {
  const auto first = numbered(10);
  for (const std::size_t changed : {0U, 5U, 9U}) {
    for (int kind = 0; kind < 4; ++kind) {
      auto next = first;
      RegionSpec spec = next[changed].spec;
      if (kind == 0) spec.dtype = DataType::int8;
      if (kind == 1) spec.name += "x";
      if (kind == 2) spec.placement = Replicated{};
      if (kind == 3) spec.is_routed = true;
      next[changed] = sample(spec);
      expect_right_after(first, next);
    }
  }
}

TEST(FormatPrediction, OneMore) {
  const auto first = numbered(10);
  for (const std::ptrdiff_t at : {0, 5, 10}) {
    auto next = first;
    next.insert(next.begin() + at, sample("more", 70000));
    expect_right_after(first, next);
  }
}

TEST(FormatPrediction, OneFewer) {
  const auto first = numbered(10);
  for (const std::ptrdiff_t at : {0, 5, 9}) {
    auto next = first;
    next.erase(next.begin() + at);
    expect_right_after(first, next);
  }
  expect_right_after(first, {});
}

TEST(FormatPrediction, GrowingAndShrinking) {
  MemoryTarget target;
  std::shared_ptr<const Layout> layout;
  for (const int count : {1, 2, 5, 30, 200, 7, 201, 0, 3}) {
    std::fill_n(target.file.content.begin(), std::min<std::size_t>(target.file.content.size(), kSuperblockBytes),
                std::byte{0});
    layout = write(target, numbered(count), layout);
    EXPECT_EQ(problem(target.file, numbered(count)), "") << count;
  }
}

TEST(FormatPrediction, Reordered) {
  const auto first = numbered(12);
  std::mt19937 random(3);
  for (int trial = 0; trial < 10; ++trial) {
    auto next = first;
    std::shuffle(next.begin(), next.end(), random);
    // The same set in another order is the same structure: it keeps the predicted places.
    expect_right_after(first, next, false);
    next[6] = sample("changed", 123456);
    expect_right_after(first, next, false);
    next.resize(8);
    expect_right_after(first, next, false);
  }
}

TEST(FormatPrediction, FromSeveralThreads) {
  for (const bool deviate : {false, true}) {
    const auto first = numbered(200);
    auto next = first;
    if (deviate) next[150] = sample("r150", 99999);
    MemoryTarget target;
    const auto layout = write(target, first);
    std::fill_n(target.file.content.begin(), kSuperblockBytes, std::byte{0});
    ContainerWriter writer(target, layout);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < next.size(); i += 4) writer.add(next[i].spec, next[i].bytes);
      });
    }
    for (auto& thread : threads) thread.join();
    static_cast<void>(writer.finish());
    writer.seal(identity());
    EXPECT_EQ(problem(target.file, next), "");
  }
}

TEST(FormatPrediction, OffsetsDependOnTheSequenceAlone) {
  const auto samples = numbered(300);
  LayoutBuilder all;
  std::vector<std::uint64_t> offsets;
  offsets.reserve(samples.size());
  for (const Sample& one : samples) offsets.push_back(all.add(one.spec));
  for (const std::size_t length : {1U, 17U, 63U, 64U, 65U, 128U, 299U}) {
    LayoutBuilder prefix;
    for (std::size_t i = 0; i < length; ++i)
      ASSERT_EQ(prefix.add(samples[i].spec), offsets[i]) << i << " of " << length;
  }
}

TEST(FormatPrediction, ARegionSavedTwiceIsRefused) {
  const auto samples = numbered(3);
  MemoryTarget target;
  const auto layout = write(target, samples);
  for (const auto& predicted : {std::shared_ptr<const Layout>(), layout}) {
    ContainerWriter writer(target, predicted);
    writer.add(samples[0].spec, samples[0].bytes);
    EXPECT_THROW(writer.add(samples[0].spec, samples[0].bytes), Error);
    EXPECT_THROW(static_cast<void>(writer.finish()), Error) << "a failed add ends the container";
  }
}

TEST(FormatPrediction, AFullStoreEndsTheContainerOnly) {
  MemoryTarget target;
  target.capacity_bytes = 200000;
  ContainerWriter writer(target, nullptr);
  writer.add(sample("a", 100).spec, sample("a", 100).bytes);
  try {
    writer.add(sample("b", 1000000).spec, sample("b", 1000000).bytes);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
  }
  EXPECT_THROW(writer.add(sample("c", 1).spec, sample("c", 1).bytes), Error);
  EXPECT_THROW(static_cast<void>(writer.finish()), Error);
  EXPECT_THROW(writer.seal(identity()), Error);
}

// A step of growth that is too much for the store is no reason to fail.
TEST(FormatPrediction, TheLastBytesOfAStoreCanBeUsed) {
  MemoryTarget sized;
  write(sized, {sample("a", 500000)});
  MemoryTarget target;
  target.capacity_bytes = sized.file.size();
  write(target, {sample("a", 500000)});
  EXPECT_TRUE(target.file.content == sized.file.content);
}

struct Death {};  // as a fault-injecting file throws it: not a std::exception

TEST(FormatPrediction, AWriterThatDiesInACopyCannotBeFinished) {
  struct DyingFile : MemoryFile {
    std::uint32_t write_with_crc(std::uint64_t, std::span<const std::byte>, std::uint32_t) override { throw Death(); }
  };
  struct DyingTarget : MemoryTarget {
    DyingFile dying;
    fs::ByteAccess& bytes() override { return dying; }
  };
  DyingTarget target;
  ContainerWriter writer(target, nullptr);
  EXPECT_THROW(writer.add(sample("a", 10).spec, sample("a", 10).bytes), Death);
  EXPECT_THROW(static_cast<void>(writer.finish()), Error);
}

}  // namespace
}  // namespace kedge::format::testing::prediction_test
