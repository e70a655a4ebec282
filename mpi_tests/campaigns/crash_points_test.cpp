// Every mutating operation of a history of five checkpoints is a point at which one rank, or all, die: the commit is
// there on all ranks or on none, and nothing that commit returned for is lost.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "base/text.hpp"
#include "harness/full_test.hpp"
#include "harness/history.hpp"

namespace kedge::faults::crash_points_test {
namespace {

constexpr int kRanks = 3;  // two on the first node, one on the second
constexpr std::uint64_t kMoreThanThereAre = 1000;

/// Three checkpoints and no farewell; then a start that opens, makes two more and ends in order.
std::vector<testing::RankOutcome> run_start(SimulatedJob& job, int start, Ledger& ledger) {
  return job.start([&](RankScope& scope) { run_application(scope, start == 1 ? 3 : 2, ledger, start == 2); });
}

DiskOptions disk_options() {
  DiskOptions options = SimulatedJob::memory_disk();
  if (full_test()) options.piece_bytes = 4096;
  return options;
}

class CrashPoints : public testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> undisturbed() const {
    std::vector<std::vector<std::uint64_t>> operations;
    SimulatedJob job(kRanks, disk_options());
    job.options.store.keep = GetParam();
    Ledger ledger;
    for (const int start : {1, 2}) {
      for (const auto& outcome : run_start(job, start, ledger)) EXPECT_TRUE(outcome.returned());
      operations.push_back(job.operations);
      std::cout << "operations of start " << start << ":";
      for (const auto count : job.operations) std::cout << ' ' << count;
      std::cout << '\n';
    }
    EXPECT_EQ(ledger.newest_returned(), 5);
    EXPECT_EQ(joined(check_after_crash(job, ledger)), "");
    return operations;
  }

  /// False if the history ended before the rank came to its n-th operation.
  [[nodiscard]] bool dies_and_recovers(int start, int rank, std::uint64_t n, bool together) const {
    SimulatedJob job(kRanks, disk_options());
    job.options.store.keep = GetParam();
    Ledger ledger;
    if (start == 2) (void)run_start(job, 1, ledger);
    job.kill_all_ranks = together;
    job.disk.stop_world_after(rank, n, n);
    const auto outcomes = run_start(job, start, ledger);
    const bool died = outcomes[static_cast<std::size_t>(rank)].died;
    EXPECT_EQ(joined(check_survivors(outcomes, together ? -1 : rank)) + joined(check_after_crash(job, ledger)), "")
        << "start " << start << ", rank " << rank << (together ? " and all with it" : " alone") << ", operation " << n;
    return died;
  }

  void at_every_operation(bool together) const {
    const auto operations = undisturbed();
    std::uint64_t points = 0;
    for (const int start : {1, 2}) {
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto expected = operations[static_cast<std::size_t>(start - 1)][static_cast<std::size_t>(rank)];
        std::uint64_t n = 1;
        while (n < kMoreThanThereAre && !HasFailure() && dies_and_recovers(start, rank, n, together)) ++n;
        if (HasFailure()) return;
        // Ranks of one node race for what a dead start left and for its storage: how often one looks is up to chance.
        EXPECT_GE(n + expected / 4, expected) << "start " << start << ", rank " << rank;
        points += n - 1;
      }
    }
    std::cout << points << " crash points\n";
  }
};

TEST_P(CrashPoints, OneRankDiesAtEveryOperation) { at_every_operation(false); }
TEST_P(CrashPoints, AllRanksDieAtEveryOperation) { at_every_operation(true); }

/// Whatever a death left is what the next start dies on.
TEST_P(CrashPoints, ADeathInEachStartOneAfterTheOtherLosesNothing) {
  for (unsigned seed = 1; seed <= (full_test() ? 3000U : 60U); ++seed) {
    std::mt19937 random(seed);
    SimulatedJob job(kRanks, disk_options());
    job.options.store.keep = GetParam();
    Ledger ledger;
    std::string trace;
    for (int start = 0; start < 5; ++start) {
      const int rank = static_cast<int>(random() % kRanks);
      const std::uint64_t n = 1 + random() % 50;
      job.kill_all_ranks = random() % 2 == 0;
      trace += compose(" rank {}{} in operation {},", rank, job.kill_all_ranks ? " and all" : "", n);
      job.disk.stop_world_after(rank, n, seed);
      const auto outcomes = run_start(job, 1, ledger);
      ASSERT_EQ(joined(check_survivors(outcomes, job.kill_all_ranks ? -1 : rank)), "") << "died:" << trace;
      ASSERT_EQ(joined(half_made_containers(job)), "") << "died:" << trace;
    }
    job.kill_all_ranks = false;
    ASSERT_EQ(joined(check_after_crash(job, ledger)), "") << "seed " << seed << ", died:" << trace;
  }
}

INSTANTIATE_TEST_SUITE_P(Keep, CrashPoints, testing::Values(1U, 2U));

}  // namespace
}  // namespace kedge::faults::crash_points_test
