// Several threads copy one region (store.copy_threads): the same bytes and checksums, they end before save returns, and
// any of them may fail or die.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "base/attempt.hpp"
#include "checksum/crc32c.hpp"
#include "format/region_copy.hpp"
#include "format/superblock.hpp"
#include "harness/simulated_job.hpp"
#include "harness/testing_world.hpp"

namespace kedge::faults::copy_threads_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

std::vector<std::byte> noise(std::uint64_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

/// Memory that several threads write, and what befalls the one that writes at `strikes_at`.
class Sheet final : public fs::ByteAccess {
 public:
  explicit Sheet(std::uint64_t size) : content(size) {}
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    ++calls;
    if (dies && offset == strikes_at) throw testing::SimulatedDeath{};
    if (offset == strikes_at) throw Error(Failure{ErrorCode::no_space, "the store is full", -1, "/store/x", ENOSPC});
    std::memcpy(content.data() + offset, bytes.data(), bytes.size());
    std::this_thread::yield();
    return crc32c(bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    ++calls;
    if (dies && offset == strikes_at) throw testing::SimulatedDeath{};
    if (offset == strikes_at) throw Error(Failure{ErrorCode::io, "the store is gone", -1, "/store/x", EIO});
    std::memcpy(bytes.data(), content.data() + offset, bytes.size());
    std::this_thread::yield();
    return crc32c(bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t, std::uint64_t, std::uint32_t) override { return 0; }

  std::vector<std::byte> content;
  std::atomic<int> calls = 0;
  std::uint64_t strikes_at = ~std::uint64_t{0};
  bool dies = false;
};

TEST(CopyThreads, BytesAndChecksumsAreThoseOfOneThread) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, 4 * kMiB, 8 * kMiB + 1, 33 * kMiB + 7}) {
    const auto bytes = noise(size, 1);
    Sheet alone(size + 4096);
    const auto expected = format::copy_region_in(alone, 4096, bytes, 1);
    EXPECT_EQ(expected.size(), (size + format::kBlockBytes - 1) / format::kBlockBytes);
    for (const unsigned threads : {0U, 2U, 3U, 4U, 64U}) {
      Sheet sheet(size + 4096);
      EXPECT_EQ(format::copy_region_in(sheet, 4096, bytes, threads), expected) << size << " by " << threads;
      EXPECT_TRUE(sheet.content == alone.content) << size << " by " << threads;
      std::vector<std::byte> back(size);
      EXPECT_EQ(format::copy_region_out(sheet, 4096, back, threads), expected) << size << " by " << threads;
      EXPECT_TRUE(back == bytes) << size << " by " << threads;
    }
  }
}

TEST(CopyThreads, AWriteThatFailsOnAnyThreadFailsTheCopyWhichHasEndedThen) {
  const auto bytes = noise(32 * kMiB, 2);
  for (std::uint64_t block = 0; block < 8; ++block) {
    for (const unsigned threads : {2U, 4U}) {
      Sheet sheet(bytes.size());
      sheet.strikes_at = block * format::kBlockBytes;
      const auto failure = attempt([&] { (void)format::copy_region_in(sheet, 0, bytes, threads); });
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, ErrorCode::no_space);
      EXPECT_EQ(failure->path, "/store/x");
      const int calls = sheet.calls;
      EXPECT_LE(calls, 8);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(sheet.calls, calls) << "a thread goes on after the copy has failed";
    }
  }
}

TEST(CopyThreads, AReadThatFailsOnAnyThreadFailsTheLoadWhichHasEndedThen) {
  std::vector<std::byte> back(32 * kMiB);
  for (std::uint64_t block = 0; block < 8; ++block) {
    for (const bool dies : {false, true}) {
      Sheet sheet(back.size());
      sheet.strikes_at = block * format::kBlockBytes;
      sheet.dies = dies;
      const auto read = [&] { (void)format::copy_region_out(sheet, 0, back, 3); };
      if (dies) {
        EXPECT_THROW(read(), testing::SimulatedDeath);
      } else {
        EXPECT_EQ(attempt(read)->code, ErrorCode::io);
      }
      const int calls = sheet.calls;
      EXPECT_LE(calls, 8);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(sheet.calls, calls) << "a thread goes on after the load has failed";
    }
  }
}

TEST(CopyThreads, TheDeathOfAProcessPassesThrough) {
  const auto bytes = noise(32 * kMiB, 3);
  for (std::uint64_t block = 0; block < 8; ++block) {
    Sheet sheet(bytes.size());
    sheet.strikes_at = block * format::kBlockBytes;
    sheet.dies = true;
    EXPECT_THROW((void)format::copy_region_in(sheet, 0, bytes, 3), testing::SimulatedDeath);
  }
}

/// Engines whose ranks copy with several threads each.
class CopyThreadsJob : public testing::TestWithParam<bool> {
 protected:
  CopyThreadsJob() { job_.options.store.copy_threads = 3; }

  static DiskOptions disk() {
    DiskOptions options = GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
    options.piece_bytes = kMiB;
    options.power_loss = false;
    return options;
  }

  static std::vector<std::byte> content(int rank, int step) {
    return noise(24 * kMiB + 5, static_cast<std::uint32_t>(100 * step + rank));
  }

  static Status checkpoint(Engine& engine, int rank, int step) {
    engine.create("step-" + std::to_string(step));
    const auto bytes = content(rank, step);
    Status status = engine.save("field", {bytes.data(), DataType::opaque, Shape{bytes.size()}});
    engine.commit();
    return status;
  }

  static void expect_opens(Engine& engine, int rank, int step) {
    EXPECT_EQ(engine.open(latest), "step-" + std::to_string(step));
    std::vector<std::byte> back(24 * kMiB + 5);
    EXPECT_TRUE(engine.load("field", {back.data(), DataType::opaque, Shape{back.size()}}).ok());
    EXPECT_TRUE(back == content(rank, step));
    engine.close();
  }

  SimulatedJob job_{2, disk()};
};
INSTANTIATE_TEST_SUITE_P(Storage, CopyThreadsJob, testing::Values(true, false),
                         [](const auto& storage) { return storage.param ? "memory" : "block"; });

TEST_P(CopyThreadsJob, WhatIsSavedIsLoaded) {
  for (const auto& outcome : job_.start([&](RankScope& scope) {
         Engine engine = scope.make_engine();
         for (int step = 1; step <= 3; ++step) EXPECT_TRUE(checkpoint(engine, scope.rank, step).ok());
         expect_opens(engine, scope.rank, 3);
       })) {
    EXPECT_TRUE(outcome.returned());
  }
}

TEST_P(CopyThreadsJob, AFailedWriteIsTheCommitsFailureAndCostsNothing) {
  // The saves of a recycled container: one reserve or unseal before, 25 pieces, whichever thread writes them.
  for (const std::uint64_t n : {9U, 20U}) {
    SimulatedJob job(2, disk());
    job.options.store.copy_threads = 3;
    for (const auto& outcome : job.start([&](RankScope& scope) {
           Engine engine = scope.make_engine();
           for (int step = 1; step <= 2; ++step) EXPECT_TRUE(checkpoint(engine, scope.rank, step).ok());
           if (scope.rank == 1) job.disk.fail(1, job.disk.operations(1) + n, EIO);
           const auto failure = attempt([&] { (void)checkpoint(engine, scope.rank, 3); });
           ASSERT_TRUE(failure) << n;
           EXPECT_EQ(failure->code, ErrorCode::io);
           EXPECT_EQ(failure->rank, 1);
           expect_opens(engine, scope.rank, 2);
           EXPECT_TRUE(checkpoint(engine, scope.rank, 4).ok());
           expect_opens(engine, scope.rank, 4);
         })) {
      EXPECT_TRUE(outcome.returned()) << n;
    }
  }
}

TEST_P(CopyThreadsJob, AProcessThatDiesWhileItsThreadsCopyLeavesTheCommitBefore) {
  for (const std::uint64_t n : {9U, 20U}) {
    SimulatedJob job(2, disk());
    job.options.store.copy_threads = 3;
    job.kill_all_ranks = true;
    (void)job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 2; ++step) (void)checkpoint(engine, scope.rank, step);
      if (scope.rank == 1) job.disk.stop_world_after(1, job.disk.operations(1) + n, n);
      (void)checkpoint(engine, scope.rank, 3);
    });
    for (const auto& outcome : job.start([&](RankScope& scope) {
           Engine engine = scope.make_engine();
           expect_opens(engine, scope.rank, 2);
         })) {
      EXPECT_TRUE(outcome.returned()) << n;
    }
  }
}

}  // namespace
}  // namespace kedge::faults::copy_threads_test
