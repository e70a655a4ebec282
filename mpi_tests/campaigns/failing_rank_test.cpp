// One rank's storage fails somewhere in a checkpoint: all ranks get the error with rank and path, nothing is lost, the
// space is free again, the next one works.
#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>
#include <mutex>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/superblock.hpp"
#include "harness/full_test.hpp"
#include "harness/history.hpp"

namespace kedge::faults::failing_rank_test {
namespace {

constexpr int kRanks = 3;
constexpr std::uint64_t kLasting = 60;  // more operations than a checkpoint has

enum class Storage : std::uint8_t { memory, block, durable };

struct Fault {
  int rank = 0;
  int step = 0;         ///< the checkpoint that is disturbed
  std::uint64_t n = 0;  ///< its n-th operation (or read) fails
  int system_errno = 0;
  bool read = false;
  std::uint64_t in_a_row = 1;  ///< so many operations fail from there on, at most until the checkpoint has failed
};

std::string describe(const Fault& fault) {
  return compose("rank {}, step {}, {} {} fails with errno {}, {} in a row", fault.rank, fault.step,
                 fault.read ? "read" : "operation", fault.n, fault.system_errno, fault.in_a_row);
}

/// What each rank's disturbed checkpoint threw, if it threw.
using Failures = std::vector<std::optional<Failure>>;

class FailingRank : public testing::TestWithParam<Storage> {
 protected:
  [[nodiscard]] static DiskOptions disk_options() {
    return GetParam() == Storage::memory ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }

  static void plan(SimulatedJob& job, const Fault& fault) {
    const std::uint64_t begin = fault.read ? job.disk.reads(fault.rank) : job.disk.operations(fault.rank);
    for (std::uint64_t n = begin + fault.n; n < begin + fault.n + fault.in_a_row; ++n) {
      if (fault.read) job.disk.fail_read(fault.rank, n, fault.system_errno);
      else job.disk.fail(fault.rank, n, fault.system_errno);
    }
  }

  /// One start: checkpoints up to the disturbed one and, if asked to, on after it.
  static Failures run(SimulatedJob& job, const Fault& fault, bool goes_on, Ledger& ledger) {
    job.options.store.durable = GetParam() == Storage::durable;
    Failures failures(kRanks);
    const auto outcomes = job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)open_and_check(engine, scope.rank, ledger);
      for (int step = 1; step < fault.step; ++step) checkpoint(engine, scope.rank, step, ledger);
      if (scope.rank == fault.rank) plan(job, fault);
      auto& failure = failures[static_cast<std::size_t>(scope.rank)];
      failure = attempt([&] { checkpoint(engine, scope.rank, fault.step, ledger); });
      if (scope.rank == fault.rank) job.disk.heal(fault.rank);
      if (failure) ledger.failed(fault.step);
      if (!goes_on) return;
      const int expected = failure ? fault.step - 1 : fault.step;
      const int opened = open_and_check(engine, scope.rank, ledger);
      if (opened != expected) ledger.problem(compose("step {} was opened instead of {}", opened, expected));
      checkpoint(engine, scope.rank, fault.step + 1, ledger);
    });
    EXPECT_EQ(joined(check_survivors(outcomes, fault.rank)), "") << describe(fault);
    for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned()) << describe(fault);
    return failures;
  }

  static void check_same(const Failures& failures, const Fault& fault) {
    for (const auto& failure : failures) {
      ASSERT_EQ(failure.has_value(), failures[0].has_value()) << describe(fault);
      if (!failure) continue;
      EXPECT_EQ(failure->code, failures[0]->code) << describe(fault);
      EXPECT_EQ(failure->message, failures[0]->message) << describe(fault);
      EXPECT_EQ(failure->code, fault.system_errno == ENOSPC ? ErrorCode::no_space : ErrorCode::io) << describe(fault);
      EXPECT_EQ(failure->rank, fault.rank) << describe(fault);
      EXPECT_TRUE(failure->path.starts_with("/nodes/")) << describe(fault) << ": path " << failure->path;
    }
  }

  static void check_freed(SimulatedJob& job, const Fault& fault) {
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const std::string& path : container_files(job.disk, rank)) {
        const auto bytes = job.disk.read_all(path);
        const bool sealed = bytes.size() >= 4096 &&
                            !attempt([&] { (void)format::decode_superblock(std::span(bytes).first<4096>(), path); });
        EXPECT_TRUE(sealed || bytes.empty()) << describe(fault) << ": " << path << " keeps " << bytes.size();
      }
    }
  }

  /// True if it struck: the checkpoint has that many operations.
  static bool fails_and_goes_on(const Fault& fault) {
    SimulatedJob job(kRanks, disk_options());
    Ledger ledger;
    const Failures failures = run(job, fault, false, ledger);
    check_same(failures, fault);
    if (failures[0] && fault.in_a_row < kLasting) check_freed(job, fault);
    EXPECT_EQ(joined(check_after_crash(job, ledger)), "") << "restarted after " << describe(fault);

    SimulatedJob same_start(kRanks, disk_options());
    Ledger again;
    check_same(run(same_start, fault, true, again), fault);
    EXPECT_EQ(joined(check_after_crash(same_start, again)), "") << "went on after " << describe(fault);
    return failures[0].has_value();
  }

  /// Operations, or reads, of one rank in the undisturbed checkpoint.
  static std::uint64_t count(int rank, int step, bool reads) {
    SimulatedJob job(kRanks, disk_options());
    job.options.store.durable = GetParam() == Storage::durable;
    Ledger ledger;
    std::uint64_t counted = 0;
    (void)job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)open_and_check(engine, scope.rank, ledger);
      for (int s = 1; s <= step; ++s) {
        const std::uint64_t before = reads ? job.disk.reads(rank) : job.disk.operations(rank);
        checkpoint(engine, scope.rank, s, ledger);
        if (scope.rank == rank) counted = (reads ? job.disk.reads(rank) : job.disk.operations(rank)) - before;
      }
    });
    return counted;
  }

  static void at_every_operation(int system_errno, bool reads, std::uint64_t in_a_row) {
    std::uint64_t points = 0;
    std::uint64_t struck = 0;
    for (const int step : {1, 2, 3, 4}) {  // new files, then recycled, growing and shrinking ones
      for (int rank = 0; rank < kRanks; ++rank) {
        const std::uint64_t operations = count(rank, step, reads);
        for (std::uint64_t n = 1; n <= operations; ++n, ++points) {
          struck += fails_and_goes_on({rank, step, n, system_errno, reads, in_a_row}) ? 1U : 0U;
          if (HasFailure()) return;
        }
      }
    }
    std::cout << points << " operations, " << struck << " of them fail a checkpoint\n";
    EXPECT_GT(struck, points / 3);
  }
};

TEST_P(FailingRank, AnIoErrorAtEveryOperation) { at_every_operation(EIO, false, 1); }
TEST_P(FailingRank, AFullStoreAtEveryOperation) { at_every_operation(ENOSPC, false, 1); }
/// The second error meets the clean-up after the first.
TEST_P(FailingRank, TwoIoErrorsInARowAtEveryOperation) { at_every_operation(EIO, false, 2); }
TEST_P(FailingRank, ADiskThatStaysBrokenFromEveryOperationOn) { at_every_operation(EIO, false, kLasting); }
TEST_P(FailingRank, AnIoErrorAtEveryLook) { at_every_operation(EIO, true, 1); }

// Durable block storage has every operation of plain block storage, and the syncs.
std::vector<Storage> storages() {
  if (full_test()) return {Storage::memory, Storage::block, Storage::durable};
  return {Storage::memory, Storage::durable};
}

INSTANTIATE_TEST_SUITE_P(Storage, FailingRank, testing::ValuesIn(storages()), [](const auto& tested) {
  return tested.param == Storage::memory ? "memory" : tested.param == Storage::block ? "block" : "durable";
});

class FullStore : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kTooMuch = std::size_t{4} << 20U;

  [[nodiscard]] static DiskOptions disk_options() {
    return GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }

  /// Rank 2 alone saves more than there is room for, after two checkpoints that fit.
  static void check(SimulatedJob& job) {
    Ledger ledger;
    std::vector<std::optional<Failure>> failures(kRanks);
    std::uint64_t used_before = 0;
    std::uint64_t used_after = 0;
    const auto outcomes = job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (const int step : {1, 2}) checkpoint(engine, scope.rank, step, ledger);
      const auto measure = [&](std::uint64_t& used) {  // while no other rank of the node is at work
        (void)engine.need_checkpoint();
        if (scope.rank == 2) used = job.disk.used_bytes("/nodes/node1");
        (void)engine.need_checkpoint();
      };
      measure(used_before);
      failures[static_cast<std::size_t>(scope.rank)] =
          attempt([&] { checkpoint(engine, scope.rank, 3, ledger, scope.rank == 2 ? kTooMuch : 0); });
      measure(used_after);
      ledger.failed(3);
      EXPECT_EQ(open_and_check(engine, scope.rank, ledger), 2);
      checkpoint(engine, scope.rank, 4, ledger);
    });
    for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
    for (const auto& failure : failures) {
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, ErrorCode::no_space);
      EXPECT_EQ(failure->rank, 2);
      EXPECT_EQ(failure->message, failures[0]->message);
      EXPECT_TRUE(failure->path.starts_with("/nodes/node1")) << failure->path;
    }
    EXPECT_LE(used_after, used_before);
    EXPECT_EQ(joined(check_after_crash(job, ledger)), "");
  }
};

TEST_P(FullStore, AFullVolumeIsNoSpaceOnAllRanks) {
  SimulatedJob job(kRanks, disk_options());
  Volume small;
  small.capacity_bytes = std::uint64_t{3} << 20U;
  small.memory_backed = GetParam();
  job.disk.make_directories("/nodes/node1");
  job.disk.set_volume("/nodes/node1", small);
  check(job);
}

TEST_P(FullStore, AReachedQuotaIsNoSpaceOnAllRanks) {
  SimulatedJob job(kRanks, disk_options());
  job.options.store.quota_bytes = std::uint64_t{3} << 20U;
  check(job);
}

INSTANTIATE_TEST_SUITE_P(Storage, FullStore, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "memory" : "block"; });

}  // namespace
}  // namespace kedge::faults::failing_rank_test
