// store.durable on block storage: the power fails at every operation, unsynced pages are old or new by seed, and what
// commit returned for is there.
#include <gtest/gtest.h>

#include <iostream>

#include "harness/full_test.hpp"
#include "harness/history.hpp"

namespace kedge::faults::power_loss_test {
namespace {

constexpr int kRanks = 3;
constexpr std::uint64_t kMoreThanThereAre = 1000;

class PowerLoss : public testing::TestWithParam<Verify> {
 protected:
  static void make_durable(SimulatedJob& job) {
    job.options.store.durable = true;
    job.options.open.verify = GetParam();
    job.kill_all_ranks = true;
  }

  /// Three checkpoints, each file recycled once; false if they ended before the rank's n-th operation.
  [[nodiscard]] static bool loses_power_and_recovers(int rank, std::uint64_t n, std::uint64_t seed) {
    SimulatedJob job(kRanks, SimulatedJob::block_disk());
    make_durable(job);
    Ledger ledger;
    job.disk.stop_world_after(rank, n, seed);
    const auto outcomes =
        job.start([&](RankScope& scope) { run_application(scope, 3, ledger, false); }, Crash::power, seed);
    EXPECT_EQ(joined(check_survivors(outcomes, -1)) + joined(check_after_crash(job, ledger)), "")
        << "rank " << rank << ", operation " << n << ", seed " << seed;
    return outcomes[static_cast<std::size_t>(rank)].died;
  }
};

TEST_P(PowerLoss, WhatCommitReturnedIsOnStableStorage) {
  const std::uint64_t seeds = full_test() ? 40 : 3;
  std::uint64_t points = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (int rank = 0; rank < kRanks; ++rank) {
      std::uint64_t n = 1;
      while (n < kMoreThanThereAre && !HasFailure() && loses_power_and_recovers(rank, n, seed)) ++n;
      if (HasFailure()) return;
      EXPECT_GT(n, 20U);
      points += n - 1;
    }
  }
  std::cout << points << " power losses\n";
}

/// Every rank has returned from the last commit and nothing was issued since: that is where a missing sync shows.
TEST_P(PowerLoss, PowerFailsRightAfterCommit) {
  for (std::uint64_t seed = 1; seed <= (full_test() ? 500 : 50); ++seed) {
    for (const int count : {1, 2, 3}) {
      SimulatedJob job(kRanks, SimulatedJob::block_disk());
      make_durable(job);
      Ledger ledger;
      (void)job.start([&](RankScope& scope) { run_application(scope, count, ledger, false); }, Crash::power, seed);
      ASSERT_EQ(ledger.newest_returned(), count);
      ASSERT_EQ(joined(check_after_crash(job, ledger)), "") << count << " checkpoints, seed " << seed;
    }
  }
}

/// What a dead start made and did not sync is not taken for durable by the next one.
TEST_P(PowerLoss, PowerFailsAfterAnEarlierDeath) {
  const std::uint64_t seeds = full_test() ? 20 : 2;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (int rank = 0; rank < kRanks; ++rank) {
      bool died = true;
      for (std::uint64_t n = 1; died && n < kMoreThanThereAre; ++n) {
        SimulatedJob job(kRanks, SimulatedJob::block_disk());
        make_durable(job);
        Ledger ledger;
        job.disk.stop_world_after(rank, n, seed);
        const auto body = [&](RankScope& scope) { run_application(scope, 1, ledger, false); };
        died = job.start(body)[static_cast<std::size_t>(rank)].died;
        for (const auto& outcome : job.start(body, Crash::power, seed)) ASSERT_TRUE(outcome.returned());
        ASSERT_EQ(joined(check_after_crash(job, ledger)), "")
            << "rank " << rank << ", operation " << n << ", seed " << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verify, PowerLoss, testing::Values(Verify::all, Verify::headers),
                         [](const auto& tested) { return tested.param == Verify::all ? "all" : "headers"; });

}  // namespace
}  // namespace kedge::faults::power_loss_test
