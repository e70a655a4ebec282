// A prefix that is full: what persistent.keep lets go leaves before a flush, one whole checkpoint and all outputs
// always stay, and a start that cannot note itself says so.
#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::full_prefix_test {
namespace {

constexpr int kRanks = 2;

class FullPrefix : public FlushFixture {
 protected:
  FullPrefix() {
    job.options.persistent.retries = 0;
    job.disk.make_directories("/prefix", 0755);
    job.disk.set_volume("/prefix", {});
    commit_steps(job, {{"t1", 1}});
    const std::uint64_t first_bytes = used();
    reopen(job, latest, Newer::keep, {{"t2", 2}});
    one_bytes = used() - first_bytes;
  }
  [[nodiscard]] std::uint64_t used() { return job.disk.used_bytes("/prefix"); }
  [[nodiscard]] std::uint64_t files() const {
    std::uint64_t count = 0;
    for (const auto& [path, entry] : job.disk.snapshot()) count += path.starts_with("/prefix") ? 1U : 0U;
    return count;
  }
  /// So many bytes are free on the prefix from now on.
  void leave(std::uint64_t free_bytes) {
    Volume volume;
    job.disk.set_volume("/prefix", volume);
    volume.capacity_bytes = used() + free_bytes;
    job.disk.set_volume("/prefix", volume);
  }
  /// One start that commits `steps`; whether the last one is persistent.
  bool flushes(const Steps& steps) {
    bool is_persistent = false;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      if (engine.info().tag.empty()) ADD_FAILURE() << "nothing was opened";
      engine.close();
      for (const auto& [tag, step] : steps) commit_step(engine, scope.rank, tag, step);
      const bool is = engine.level(steps.back().first) == Level::persistent;
      if (scope.rank == 0) is_persistent = is;
    }));
    return is_persistent;
  }

  PersistentJob job{kRanks};
  std::uint64_t one_bytes = 0;  ///< that a checkpoint takes there
};

TEST_F(FullPrefix, WhatTheRulesLetGoLeavesBeforeTheFlush) {
  reopen(job, latest, Newer::keep, {{"t3", 3}, {"t4", 4}, {"t5", 5}});
  leave(one_bytes / 2);
  EXPECT_FALSE(flushes({{"u", 6}})) << "without persistent.keep";
  job.options.persistent.keep = 2;
  EXPECT_TRUE(flushes({{"v", 7}}));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"v", "t5"}));
  EXPECT_TRUE(job.logged("removed old checkpoints from the prefix before the flush of v"));
}

/// As many as are kept fill it: the new one takes the place of the oldest.
TEST_F(FullPrefix, ThatIsFullOfWhatIsKept) {
  job.options.persistent.keep = 2;
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    job.options.pipeline.mode = mode;
    leave(one_bytes / 4);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 3; step < 9; ++step) {
        const Tag tag = compose("s{}", step);
        commit_step(engine, scope.rank, tag, step);
        engine.wait(tag, Level::persistent);
      }
      engine.finalize();
    }));
    EXPECT_EQ(tags(job), (std::vector<Tag>{"s8", "s7"}));
  }
}

/// Freeing needs no space.
TEST_F(FullPrefix, WithoutAByteAndWithoutAFileLeft) {
  reopen(job, latest, Newer::keep, {{"t3", 3}});
  job.options.persistent.keep = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    once(engine, scope.rank, [&] {
      Volume volume;
      volume.capacity_bytes = used();
      volume.capacity_inodes = files();
      job.disk.set_volume("/prefix", volume);
    });
    commit_step(engine, scope.rank, "t4", 4);
    EXPECT_EQ(engine.level("t4"), Level::persistent);
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"t4", "t3"}));
  EXPECT_EQ(directories(job).size(), 2U);
}

TEST_F(FullPrefix, TheLastWholeOneStays) {
  job.options.persistent.keep = 1;
  EXPECT_TRUE(flushes({{"a", 3}}));
  leave(one_bytes / 2);
  EXPECT_FALSE(flushes({{"b", 4}}));
  EXPECT_EQ(tags(job), std::vector<Tag>{"a"});
  EXPECT_TRUE(job.logged("with persistent.keep = 1 nothing more can be removed before this flush succeeds"));
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job).step, 3);
}

/// What looks like a checkpoint and has lost a container is none to fall back on.
TEST_F(FullPrefix, TheLastWholeOneStaysUnderBrokenOnes) {
  reopen(job, latest, Newer::keep, {{"t3", 3}});
  job.options.persistent.keep = 2;
  job.disk.remove_all(container_of(job, "t3", 1));
  job.disk.flip_bit(container_of(job, "t2", 1), 100);
  leave(one_bytes / 2);
  EXPECT_FALSE(flushes({{"a", 4}}));
  EXPECT_THAT(tags(job), testing::Contains("t1"));
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job).step, 1);
}

/// An output is no checkpoint to fall back on, so one beside it stays; and it is never removed to make room.
TEST_F(FullPrefix, OutputsAreNothingToFallBackOnAndMakeNoRoom) {
  const auto write_output = [&](const Tag& tag) {
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_TRUE(engine.open().has_value());
      engine.close();
      engine.create_output(tag);
      const std::vector<double> plot(one_bytes / 8, 1);
      EXPECT_TRUE(engine.save("plot", region(std::span(plot))).ok());
      engine.commit();
    }));
  };
  job.options.persistent.keep = 2;
  job.disk.remove_all(container_of(job, "t2", 1));
  write_output("p1");
  leave(one_bytes / 2);
  EXPECT_FALSE(flushes({{"a", 4}}));
  EXPECT_THAT(tags(job), testing::IsSupersetOf({"t1", "p1"}));
}

TEST_F(FullPrefix, PinnedOnesStay) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.pin("t1");
    commit_step(engine, scope.rank, "t3", 3);
    commit_step(engine, scope.rank, "t4", 4);
  }));
  job.options.persistent.keep = 2;
  leave(one_bytes / 2);
  EXPECT_TRUE(flushes({{"a", 5}}));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"a", "t4", "t1"}));
}

/// Nothing goes in vain.
TEST_F(FullPrefix, WhatDoesNotFitAnywayCostsNothingThatIsKept) {
  job.options.persistent.keep = 2;
  leave(one_bytes / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const std::vector<double> values(one_bytes, 1);  // eight times as much, on each rank
    engine.create("large");
    EXPECT_TRUE(engine.save("values", region(std::span(values))).ok());
    engine.commit();
    EXPECT_NE(engine.level("large"), Level::persistent);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"t2", "t1"}));
}

/// As kedge drain flushes it.
TEST_F(FullPrefix, AWaitInALaterStartMakesRoomToo) {
  reopen(job, latest, Newer::keep, {{"t3", 3}});
  job.options.persistent.every = 0;
  reopen(job, latest, Newer::keep, {{"a", 4}});
  job.options.persistent.keep = 2;
  leave(one_bytes / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.wait("a", Level::persistent);
    engine.close();
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"a", "t3"}));
}

/// A start needs a few bytes there, to note itself, and so does the drain of stores that have all.
TEST_F(FullPrefix, AStartThatCannotNoteItselfSaysWhatToDoAndCostsNothing) {
  job.options.persistent.every = 0;
  reopen(job, latest, Newer::keep, {{"newest", 3}});
  const std::uint64_t files_before = files();
  const auto before = job.disk.snapshot();
  for (const auto& [has_files, is_drain] : {std::pair{true, false}, {false, false}, {true, true}}) {
    job.disk.set_volume("/prefix", {});
    job.disk.restore(before);
    job.surroundings = [drains = is_drain](int, start::Environment& environment) { environment.is_drain = drains; };
    for (std::uint64_t free_bytes = 0; free_bytes < 2000; free_bytes += 100) {  // at each of its notes
      SCOPED_TRACE(free_bytes);
      Volume volume;
      job.disk.set_volume("/prefix", volume);
      volume.capacity_bytes = used() + free_bytes;
      if (!has_files) volume.capacity_inodes = files() + free_bytes / 100;
      job.disk.set_volume("/prefix", volume);
      const auto outcomes = job.start([&](RankScope& scope) { const Engine engine = scope.make_engine(); });
      if (outcomes[0].returned()) {
        EXPECT_GT(free_bytes, 0U);
        break;
      }
      const auto failure = expect_all_failed(outcomes, ErrorCode::no_space);
      EXPECT_TRUE(
          says(failure.message, {"no space left on the parallel filesystem", "free some", "kedge drain", "are kept"}))
          << failure.message;
      EXPECT_EQ(files(), files_before);
    }
  }
  job.disk.set_volume("/prefix", {});
  job.surroundings = {};
  EXPECT_EQ(reopen(job).step, 3);
}

/// Whenever the job dies meanwhile, and with it all stores, a checkpoint is there.
TEST_F(FullPrefix, AtNoMomentIsThereNothingToOpen) {
  job.options.persistent.keep = 2;
  leave(one_bytes / 4);
  const auto before = job.disk.snapshot();
  for (std::uint64_t n = 1;; n += 3) {
    SCOPED_TRACE(n);
    job.disk.restore(before);
    bool has_died = false;
    (void)job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.need_checkpoint();
      if (scope.rank == 0) {
        job.disk.on_death([&](int) {
          has_died = true;
          job.disk.stop_all(n);
        });
        job.disk.stop_world_after(0, job.disk.operations(0) + n, n);
      }
      (void)engine.need_checkpoint();
      commit_step(engine, scope.rank, "a", 3);
      EXPECT_EQ(engine.level("a"), Level::persistent);
    });
    lose_stores(job, {0, 1});
    job.disk.on_death({});
    EXPECT_GE(reopen(job).step, 2);
    if (!has_died) break;
    ASSERT_LT(n, 2000U);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace kedge::faults::full_prefix_test
