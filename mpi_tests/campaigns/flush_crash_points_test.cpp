// Every mutating operation of a history that flushes each commit is a point at which one rank, or all, die, or the
// power fails: all or nothing is on the prefix, also where persistent.keep removes, and leftovers are removed.
// Afterwards all stores are lost, or nothing is.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/full_test.hpp"
#include "harness/redundancy_history.hpp"

namespace kedge::faults::flush_crash_points_test {
namespace {

struct Case {
  std::string name;
  int ranks = 2;
  std::uint64_t keep = 0;  ///< persistent.keep
  std::uint64_t one_in = 1;
  friend void PrintTo(const Case& tested, std::ostream* stream) { *stream << tested.name; }
};

class FlushCrashPoints : public FlushFixture, public testing::WithParamInterface<Case> {
 protected:
  static constexpr int kSteps = 3;

  struct Job : PersistentJob {
    explicit Job(const Case& tested, DiskOptions disk_options = memory_disk())
        : PersistentJob(tested.ranks, std::move(disk_options)) {
      options.persistent.keep = tested.keep;
    }
  };
  static std::vector<testing::RankOutcome> run(SimulatedJob& job, Ledger& ledger, Crash crash = Crash::process,
                                               std::uint64_t seed = 0) {
    return job.start([&](RankScope& scope) { run_application(scope, kSteps, ledger, false); }, crash, seed);
  }

  /// Where there is a manifest, all containers are: in whatever order things went to stable storage.
  static void expect_whole(SimulatedJob& job, const std::string& where) {
    const auto after = job.disk.snapshot();
    for (const auto& entry : list(job).entries) {
      for (std::uint32_t rank = 0; rank < entry.commit.world_size; ++rank) {
        const std::string path = fs::join("/prefix/" + entry.directory, persist::container_file(LogicalRank{rank}));
        const bool there = after.contains(path) && after.at(path).bytes.size() > 4096;
        EXPECT_TRUE(there) << where << ": " << path;
      }
    }
  }

  /// The newest that was said to be persistent is there, or a newer one; never nothing, silently.
  static void expect_persistent_survives(SimulatedJob& job, const Ledger& ledger, const std::string& where) {
    job.disk.remove_all("/nodes");
    EXPECT_EQ(joined(check_recovery(job, ledger, ledger.newest_persistent())), "") << where;
    // With neither stores nor a manifest it may be unrecoverable, and then nothing was flushed after it.
    if (ledger.newest_persistent() != 0) expect_swept(job, where);
  }
  /// After a start that flushed something, nothing lies half made on the prefix.
  static void expect_swept(SimulatedJob& job, const std::string& where) {
    for (const auto& one : list(job).unusable_tags)
      ADD_FAILURE() << where << ": " << one.directory << ": " << one.reason;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      EXPECT_EQ(path.find("/unfinished-"), std::string::npos) << where << ": " << path;
      EXPECT_FALSE(path.ends_with(".new")) << where << ": " << path;
    }
  }
};

TEST_P(FlushCrashPoints, ADeathAtEveryOperationLosesNoCommit) {
  Job job(GetParam());
  const auto empty = job.disk.snapshot();
  Ledger undisturbed;
  for (const auto& outcome : run(job, undisturbed)) ASSERT_TRUE(outcome.returned());
  ASSERT_EQ(undisturbed.newest_persistent(), kSteps);
  for (const Point& point : points(compose("flush, {}", GetParam().name), job.operations, GetParam().one_in)) {
    job.disk.restore(empty);
    Ledger ledger;
    plan(job, point);
    const auto outcomes = run(job, ledger);
    job.kill_all_ranks = false;
    ASSERT_EQ(joined(check_survivors(outcomes, point.together ? -1 : point.rank)), "") << describe(point);
    const auto crashed = job.disk.snapshot();
    expect_whole(job, describe(point));
    ASSERT_EQ(joined(check_nothing_lost(job, ledger)), "") << describe(point) << ", and nothing was lost";
    expect_swept(job, describe(point) + ", and nothing was lost");
    job.disk.restore(crashed);
    expect_persistent_survives(job, ledger, describe(point) + ", then all stores were lost");
    if (HasFailure()) return;
  }
}

TEST_P(FlushCrashPoints, APowerLossAtEveryOperationLosesNoCommit) {
  Job job(GetParam(), SimulatedJob::block_disk());  // the disk under the prefix forgets what was not synced
  const auto empty = job.disk.snapshot();
  Ledger undisturbed;
  for (const auto& outcome : run(job, undisturbed)) ASSERT_TRUE(outcome.returned());
  auto chosen =
      points(compose("flush and power, {}", GetParam().name), job.operations, 3 * GetParam().one_in, Deaths::together);
  chosen.push_back({0, 100000, true});  // right after the last commit: that is where a missing sync shows
  for (const Point& point : chosen) {
    job.disk.restore(empty);
    Ledger ledger;
    plan(job, point);
    (void)run(job, ledger, Crash::power, point.n);
    job.kill_all_ranks = false;
    expect_whole(job, describe(point) + ", and the power failed");
    expect_persistent_survives(job, ledger, describe(point) + ", and the power failed");
    if (HasFailure()) return;
  }
}

/// When wait or commit has said that it is persistent: each page, size and name that was not synced is lost or not, by
/// seed.
TEST_P(FlushCrashPoints, APowerLossRightAfterTheCommitLosesNoCommit) {
  Job job(GetParam(), SimulatedJob::block_disk());
  const auto empty = job.disk.snapshot();
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    job.disk.restore(empty);
    Ledger ledger;
    (void)job.start([&](RankScope& scope) { run_application(scope, 1 + static_cast<int>(seed % 3), ledger, false); },
                    Crash::power, seed);
    expect_whole(job, compose("seed {}", seed));
    expect_persistent_survives(job, ledger, compose("seed {}", seed));
    if (HasFailure()) return;
  }
}

/// Whatever a death left is what the next start dies on; at the end the stores are lost.
TEST_P(FlushCrashPoints, ADeathInEachStartOneAfterTheOtherLosesNoCommit) {
  for (std::uint64_t seed = 1; seed <= (full_test() ? 1000U : 25U); ++seed) {
    Job job(GetParam());
    Ledger ledger;
    for (std::uint64_t start = 0; start < 5; ++start) {
      const Point point{static_cast<int>((seed + start) % static_cast<std::uint64_t>(job.ranks)),
                        1 + (seed * 37 + start * 101) % 150, (seed + start) % 2 == 0};
      plan(job, point);
      (void)run(job, ledger);
      job.kill_all_ranks = false;
    }
    expect_persistent_survives(job, ledger, compose("seed {}", seed));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, FlushCrashPoints,
                         testing::Values(Case{"two_ranks"}, Case{"keep_one", 2, 1, 4}, Case{"three_ranks", 3, 0, 4}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kedge::faults::flush_crash_points_test
