// A start that fetches everything, commits and flushes once more is disturbed (a rank dies at any operation, falls
// silent at any message, or its storage fails once): what was persistent stays, and all ranks see the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/full_test.hpp"
#include "harness/redundancy_history.hpp"

namespace kedge::faults::fetch_faults_test {
namespace {

constexpr int kRanks = 3;
constexpr int kSteps = 2;

class FetchFaults : public FlushFixture {
 protected:
  FetchFaults() : job(kRanks) {
    Ledger ledger;
    for (const auto& outcome : job.start([&](RankScope& scope) { run_application(scope, kSteps, ledger, false); })) {
      EXPECT_TRUE(outcome.returned());
    }
    EXPECT_EQ(ledger.newest_persistent(), kSteps);
    job.disk.remove_all("/nodes");
    before = job.disk.snapshot();
  }

  std::vector<testing::RankOutcome> run(Ledger& ledger) {
    ledger.begun(kSteps);
    ledger.returned(kSteps);
    ledger.is_persistent(kSteps);
    return job.start([&](RankScope& scope) { run_application(scope, 1, ledger, false); });
  }

  void expect_undisturbed_run() {
    Ledger ledger;
    for (const auto& outcome : run(ledger)) ASSERT_TRUE(outcome.returned());
    ASSERT_EQ(ledger.newest_persistent(), kSteps + 1);
  }

  /// Once as it is, once with all stores lost again.
  void expect_nothing_lost(Ledger& ledger, const std::string& where) {
    job.kill_all_ranks = false;
    job.plan = nullptr;
    const auto disturbed = job.disk.snapshot();
    EXPECT_EQ(joined(check_nothing_lost(job, ledger)), "") << where;
    job.disk.restore(disturbed);
    job.disk.remove_all("/nodes");
    EXPECT_EQ(joined(check_recovery(job, ledger, ledger.newest_persistent())), "") << where << ", then all stores";
  }

  PersistentJob job;
  FaultyDisk::Snapshot before;
};

TEST_F(FetchFaults, EveryOperationIsACrashPoint) {
  expect_undisturbed_run();
  for (const Point& point : points("fetch", job.operations, 4)) {
    job.disk.restore(before);
    Ledger ledger;
    plan(job, point);
    const auto outcomes = run(ledger);
    ASSERT_EQ(joined(check_survivors(outcomes, point.together ? -1 : point.rank)), "") << describe(point);
    expect_nothing_lost(ledger, describe(point));
    if (HasFailure()) return;
  }
}

TEST_F(FetchFaults, NoMessageIsOneTooFew) {
  expect_undisturbed_run();
  const auto events = job.events;  // of the undisturbed start
  for (const testing::StopKind kind : {testing::StopKind::die, testing::StopKind::stop}) {
    for (const Point& point : points("fetch, messages", events, 25, Deaths::alone)) {
      job.disk.restore(before);
      Ledger ledger;
      job.plan = [&](testing::InProcessWorld& world) { world.stop_at(point.rank, point.n - 1, kind); };
      const auto outcomes = run(ledger);
      const std::string where = compose("rank {}, event {}", point.rank, point.n - 1);
      ASSERT_EQ(joined(check_survivors(outcomes, point.rank)), "") << where;
      expect_nothing_lost(ledger, where);
      if (HasFailure()) return;
    }
  }
}

/// In `open`: the same tag or the same failure on all ranks, and a next start finds all.
TEST_F(FetchFaults, OneRanksStorageFailsOnce) {
  std::uint64_t failed = 0;
  for (const bool read : {false, true}) {
    for (int rank = 0; rank < kRanks; ++rank) {
      bool reached = true;
      for (std::uint64_t n = 1; reached && n < 300; n += full_test() ? 1U : 2U) {
        job.disk.restore(before);
        const std::string where = compose("rank {}, {} {}", rank, read ? "read" : "operation", n);
        std::vector<std::string> saw(kRanks);
        for (const auto& outcome : job.start([&](RankScope& scope) {
               Engine engine = scope.make_engine();
               const auto count = [&] { return read ? job.disk.reads(rank) : job.disk.operations(rank); };
               const std::uint64_t target = scope.rank == rank ? count() + n : 0;
               if (scope.rank == rank && read) job.disk.fail_read(rank, target, EIO);
               if (scope.rank == rank && !read) job.disk.fail(rank, target, EIO);
               std::optional<Tag> tag;
               const auto failure = attempt([&] { tag = engine.open(); });
               saw[static_cast<std::size_t>(scope.rank)] =
                   failure ? std::string(to_string(failure->code)) : tag.value_or("nothing");
               if (scope.rank == rank) reached = count() >= target;
               if (!failure && tag) engine.close();
             })) {
          EXPECT_TRUE(outcome.returned()) << where;
        }
        EXPECT_EQ(std::ranges::count(saw, saw[0]), kRanks) << where << ": " << joined(saw);
        EXPECT_NE(saw[0], "nothing") << where;
        failed += saw[0] == "step-2" ? 0U : 1U;
        Ledger ledger;
        ledger.begun(kSteps);
        ledger.returned(kSteps);
        EXPECT_EQ(joined(check_nothing_lost(job, ledger)), "") << where;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(failed, 5U);
}

}  // namespace
}  // namespace kedge::faults::fetch_faults_test
