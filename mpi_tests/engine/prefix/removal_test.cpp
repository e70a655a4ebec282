// Old checkpoints leave the prefix piece by piece: no commit waits for a long history, and what a commit costs does not
// grow with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"
#include "harness/slow_to_remove.hpp"

namespace kedge::faults::removal_test {
namespace {

class Removal : public FlushFixture {
 protected:
  static constexpr int kRanks = 4;

  /// A history of which nothing was removed.
  static void make_history(SimulatedJob& job, int commits) {
    Steps steps;
    for (int step = 1; step <= commits; ++step) steps.emplace_back(compose("t{}", step), step);
    commit_steps(job, steps);
  }
  /// Tag directories, commits or not.
  static std::size_t directories_left(SimulatedJob& job) {
    const auto names = job.disk.view(0)->list("/prefix");
    return static_cast<std::size_t>(std::ranges::count_if(
        names, [](const std::string& name) { return persist::parse_tag_directory_name(name).has_value(); }));
  }
  static void make_slow(SimulatedJob& job, double seconds) {
    job.surroundings = [seconds](int, start::Environment& environment) {
      environment.file_system = std::make_shared<SlowToRemove>(environment.file_system, environment.clock, seconds);
    };
  }
};

TEST_F(Removal, AHistoryThatMayGoAtOnceGoesPieceByPieceAndTheRestWithTheNextStart) {
  PersistentJob job(kRanks);
  make_history(job, 40);
  job.options.persistent.keep = 2;
  make_slow(job, 1.0);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 3; ++step) {
      commit_step(engine, scope.rank, "u", step);
      EXPECT_EQ(engine.level("u"), Level::persistent);
    }
  }));
  EXPECT_TRUE(job.logged("removed 2 of 39 old checkpoints from the prefix (persistent.keep) in "));
  EXPECT_LT(tags(job).size(), 43U);
  EXPECT_GT(directories_left(job), 30U);
  job.surroundings = nullptr;
  reopen(job, latest, Newer::keep, {{"v", 1}});
  reopen(job, latest, Newer::keep, {{"v", 2}});
  EXPECT_EQ(tags(job).size(), 2U);
  EXPECT_EQ(directories_left(job), 2U);
  EXPECT_EQ(reopen(job).step, 2);
}

/// Else a history would only grow where a removal takes longer than its share of a flush.
TEST_F(Removal, AHistoryGetsShorterWithEachFlushHoweverSlowThePrefixIs) {
  PersistentJob job(kRanks);
  make_history(job, 12);
  job.options.persistent.keep = 2;
  make_slow(job, 10.0);
  std::size_t before = tags(job).size();
  for (int step = 1; step <= 11; ++step) {
    reopen(job, latest, Newer::keep, {{compose("u{}", step), step}});
    EXPECT_EQ(tags(job).size(), std::max<std::size_t>(2, before - 1)) << step;
    before = tags(job).size();
    EXPECT_LE(directories_left(job), before + 1) << step;
  }
}

TEST_F(Removal, ManyPinnedOnesDoNotKeepTheOthers) {
  constexpr int kPinned = 70;  // more than go with one flush
  PersistentJob job(1);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= kPinned; ++step) {
      commit_step(engine, scope.rank, compose("t{}", step), step);
      engine.pin(compose("t{}", step));
    }
  }));
  job.options.persistent.keep = 1;
  reopen(job, latest, Newer::keep, {{"a", 1}, {"b", 2}, {"c", 3}});
  EXPECT_EQ(tags(job).size(), kPinned + 1U);
}

/// Virtual time: nobody else sleeps in this job.
TEST_F(Removal, NoCommitTakesMuchLongerThanItsShareOfTheRemoval) {
  PersistentJob job(kRanks);
  make_history(job, 30);
  job.options.persistent.keep = 1;
  auto clock = std::make_shared<FakeClock>();
  job.surroundings = [&](int, start::Environment& environment) {
    environment.clock = clock;
    environment.file_system = std::make_shared<SlowToRemove>(environment.file_system, clock, 10.0);
  };
  double longest_s = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 4; ++step) {
      scope.communicator.barrier(Deadline::never());
      const double begun_at = clock->seconds();
      commit_step(engine, scope.rank, "u", step);
      scope.communicator.barrier(Deadline::never());
      if (scope.rank == 0) longest_s = std::max(longest_s, clock->seconds() - begun_at);
    }
  }));
  // In this world the waits of all ranks add up. One manifest, a container on each rank, what clears one directory, and
  // what a flush replaces anyway; 31 directories of 4 containers would be 2000 s.
  EXPECT_GT(longest_s, 10);
  EXPECT_LT(longest_s, 200);
}

/// A prefix on which one checkpoint cannot be removed.
class Immutable final : public ForwardingFileSystem {
 public:
  Immutable(std::shared_ptr<fs::FileSystem> inner, std::string directory)
      : ForwardingFileSystem(std::move(inner)), directory_(std::move(directory)) {}
  void remove(const std::string& path) override {
    if (path.starts_with(directory_) && inner().status(path)) {
      throw Error(Failure{ErrorCode::io, "cannot remove: not permitted", -1, path, EPERM});
    }
    inner().remove(path);
  }

 private:
  std::string directory_;
};

TEST_F(Removal, OneThatCannotBeRemovedDoesNotKeepTheOthers) {
  PersistentJob job(kRanks);
  make_history(job, 6);
  const std::string stuck = directory_of(job, "t2");
  job.options.persistent.keep = 1;
  job.surroundings = [&](int, start::Environment& environment) {
    environment.file_system = std::make_shared<Immutable>(environment.file_system, stuck);
  };
  reopen(job, latest, Newer::keep, {{"u", 1}, {"v", 2}});
  EXPECT_EQ(tags(job), (std::vector<Tag>{"v", "t2"}));
  EXPECT_TRUE(job.logged("old commits could not be removed from the prefix: "));
  job.surroundings = nullptr;
  reopen(job, latest, Newer::keep, {{"w", 3}});
  EXPECT_EQ(tags(job), (std::vector<Tag>{"w"}));
}

TEST_F(Removal, AFewGoWithEachFlushWhereRemovingIsQuick) {
  PersistentJob job(2);
  make_history(job, 150);
  job.options.persistent.keep = 1;
  for (const std::size_t left : {87U, 24U, 1U}) {
    reopen(job, latest, Newer::keep, {{"u", 1}});
    EXPECT_EQ(tags(job).size(), left);
  }
  EXPECT_EQ(directories_left(job), 1U);
}

/// Containers on ranks of which one is slow, or that were many: what is left in the queue is no commit any more.
TEST_F(Removal, WhatIsLeftInTheQueueGoesWithTheNextStart) {
  PersistentJob job(kRanks);
  make_history(job, 6);
  job.options.persistent.keep = 1;
  job.surroundings = [](int rank, start::Environment& environment) {
    if (rank != 2) return;  // rank 0 retracts quickly
    environment.file_system = std::make_shared<SlowToRemove>(environment.file_system, environment.clock, 5.0);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "u", 1);
  }));
  EXPECT_TRUE(job.logged("removing old checkpoints from the prefix is slow"));
  EXPECT_EQ(tags(job).size(), 1U);
  EXPECT_GT(directories_left(job), 3U);
  job.surroundings = nullptr;
  reopen(job, latest, Newer::keep, {{"v", 2}});
  EXPECT_EQ(directories_left(job), 1U);
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(Removal, OnePinnedInTheMeantimeStays) {
  PersistentJob job(2);
  make_history(job, 4);
  job.options.persistent.keep = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "u", 1);  // reads the list
    engine.pin("t4");
    for (int step = 2; step <= 4; ++step) commit_step(engine, scope.rank, "u", step);
  }));
  const auto left = tags(job);
  EXPECT_EQ(left.size(), 3U);
  EXPECT_NE(std::ranges::find(left, "t4"), left.end());
}

TEST_F(Removal, OneThatSomebodyElsePinnedStays) {
  PersistentJob job(1);
  make_history(job, 2);
  job.options.persistent.keep = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "u1", 1);
    commit_step(engine, scope.rank, "u2", 2);  // reads the list
    job.disk.write_all(fs::join(directory_of(job, "t2"), "pinned"), {});
    for (int step = 3; step <= 6; ++step) commit_step(engine, scope.rank, compose("u{}", step), step);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"u6", "u5", "u4", "t2"}));
}

TEST_F(Removal, ACommitIsFlushedAgainUnderTheNameThatIsBeingRemoved) {
  PersistentJob job(2);
  job.options.store.keep = 3;
  job.options.persistent.keep = 1;
  make_slow(job, 5.0);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("a", Level::persistent);
    EXPECT_EQ(engine.level("a"), Level::persistent);
  }));
  job.surroundings = nullptr;
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job, Tag{"a"}).step, 1);
}

TEST_F(Removal, ARankThatCannotRemoveItsContainersCostsNoCommit) {
  for (std::uint64_t n = 1; n < 40; ++n) {
    PersistentJob job(2);
    make_history(job, 3);
    job.options.persistent.keep = 1;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "u", 1);
      if (scope.rank == 1) job.disk.fail(1, job.disk.operations(1) + n, EIO);
      try {
        commit_step(engine, scope.rank, "u", 2);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io) << n;  // it was the commit itself that failed
      }
      if (scope.rank == 1) job.disk.heal(1);
      commit_step(engine, scope.rank, "u", 3);
    }));
    reopen(job, latest, Newer::keep, {{"v", 7}});
    EXPECT_EQ(reopen(job).step, 7) << n;
    EXPECT_EQ(directories_left(job), 1U) << n;
  }
}

/// Operations and bytes of one flushed commit of rank 0, with so many tags on the prefix.
struct Cost {
  double operations = 0;
  double bytes = 0;
};

Cost cost_with(int commits, std::uint64_t keep) {
  PersistentJob job(1);
  job.options.persistent.keep = keep;
  Cost cost;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= commits; ++step) commit_step(engine, scope.rank, compose("t{}", step), step);
    commit_step(engine, scope.rank, "first", 1);  // the first that makes another go looks at all that is there
    const auto operations = [&] { return static_cast<double>(job.disk.operations(0) + job.disk.reads(0)); };
    const double before = operations();
    const auto bytes = static_cast<double>(job.disk.bytes_read("/prefix"));
    constexpr int kMeasured = 10;
    for (int step = 1; step <= kMeasured; ++step) commit_step(engine, scope.rank, compose("m{}", step), step);
    cost.operations = (operations() - before) / kMeasured;
    cost.bytes = (static_cast<double>(job.disk.bytes_read("/prefix")) - bytes) / kMeasured;
  }));
  return cost;
}

TEST_F(Removal, WhatACommitCostsDoesNotGrowWithTheNumberOfTags) {
  struct Keep {
    std::string name;
    std::uint64_t few, many;
  };
  // All are kept; none goes though some could; as many go as come.
  for (const Keep& keep : {Keep{"all", 0, 0}, Keep{"more than there are", 10'000, 10'000}, Keep{"most", 20, 300}}) {
    const Cost few = cost_with(20, keep.few);
    const Cost many = cost_with(300, keep.many);
    EXPECT_LT(many.operations, few.operations * 1.2) << "keep " << keep.name;
    EXPECT_LT(many.bytes, few.bytes * 1.2 + 1000) << "keep " << keep.name;
  }
}

}  // namespace
}  // namespace kedge::faults::removal_test
