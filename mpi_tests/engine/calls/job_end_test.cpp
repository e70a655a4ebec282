// should_exit and need_checkpoint when a signal asks the job to end: all ranks alike, whoever got it, whichever call
// finds out, whatever fails, and if a rank dies meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include "harness/ending_job.hpp"
#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::job_end_test {
namespace {

TEST(JobEnd, ASignalToOneRankEndsTheLoopOfAllAfterALastCheckpoint) {
  JobWithDeadline job;
  job.options.persistent.every = 10;
  const Loop loop = job.run_loop(8, [&](int rank, int step) {
    if (rank == 2 && step == 3) job.signals[2] = SIGTERM;
  });
  EXPECT_EQ(loop.saved, std::vector<int>{3});
  EXPECT_EQ(loop.last_step, 3);
  EXPECT_EQ(loop.level_of_last, Level::persistent) << "though it was not its turn";
  EXPECT_TRUE(
      job.logged("rank 2 received SIGTERM: taking the last checkpoint now, up to level persistent (estimated 1 min 20 "
                 "s, partly"));
  EXPECT_EQ(reopen(job).step, 3);
}

TEST(JobEnd, WithoutASignalOrADeadlineNothingEnds) {
  JobWithDeadline job;
  const Loop loop = job.run_loop(5);
  EXPECT_EQ(loop.saved, std::vector<int>{});
  EXPECT_EQ(loop.last_step, 5);
}

TEST(JobEnd, IsSoForGoodAndOnlyOneCheckpointBelongsToIt) {
  JobWithDeadline job;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(engine.should_exit());
    if (scope.rank == 3) job.signals[3] = SIGUSR1;
    EXPECT_TRUE(engine.need_checkpoint());
    EXPECT_TRUE(engine.need_checkpoint()) << "until there is one";
    EXPECT_TRUE(engine.should_exit());
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 1) job.signals[1] = SIGTERM;
    for (int call = 0; call < 3; ++call) {
      EXPECT_FALSE(engine.need_checkpoint());
      EXPECT_TRUE(engine.should_exit());
    }
    engine.finalize();
    EXPECT_EQ(code_of([&] { (void)engine.should_exit(); }), ErrorCode::bad_state);
  }));
}

/// Between the two calls of a pass: the loop must not end before the checkpoint of the step that it has just made.
TEST(JobEnd, ASignalAfterNeedCheckpointIsForTheNextPass) {
  JobWithDeadline job;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(engine.need_checkpoint());
    job.signals[1] = SIGTERM;
    EXPECT_FALSE(engine.should_exit());
    EXPECT_TRUE(engine.need_checkpoint());
    EXPECT_TRUE(engine.should_exit());
  }));
}

TEST(JobEnd, WithoutNeedCheckpointShouldExitLooksItself) {
  JobWithDeadline job;
  job.options.persistent.every = 10;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(engine.should_exit());
    if (scope.rank == 3) job.signals[3] = SIGTERM;
    EXPECT_TRUE(engine.should_exit());
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(engine.level("a"), Level::persistent);
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::protected_) << "only the first is the last";
  }));
  EXPECT_TRUE(job.logged("rank 3 received SIGTERM: should_exit is true, and the next checkpoint is the last, up to"));
}

TEST(JobEnd, ACheckpointThatFailedIsAskedForAgain) {
  JobWithDeadline job;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    job.signals[0] = SIGTERM;
    EXPECT_TRUE(engine.need_checkpoint());
    engine.create("a");
    if (scope.rank == 1) (void)engine.save("", {});
    EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
    EXPECT_TRUE(engine.should_exit());
    EXPECT_TRUE(engine.need_checkpoint());
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_FALSE(engine.need_checkpoint());
  }));
}

/// What the schedule asks for is asked for all the same until then, and not afterwards.
TEST(JobEnd, TheScheduleHoldsUntilTheLastCheckpoint) {
  JobWithDeadline job;
  job.options.schedule.every = 2;
  const Loop loop = job.run_loop(9, [&](int rank, int step) {
    if (rank == 1 && step == 5) job.signals[1] = SIGTERM;
  });
  EXPECT_EQ(loop.saved, (std::vector<int>{2, 4, 5}));
}

TEST(JobEnd, AfterASignalTheGraceIsWhatIsLeft) {
  JobWithDeadline job;
  job.options.persistent.every = 1;
  job.options.exit.margin_s = 1;
  job.options.exit.grace_s = 10;
  job.flush_s = 20;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    job.signals[2] = SIGTERM;
    EXPECT_TRUE(engine.need_checkpoint());
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::protected_);
  }));
  EXPECT_TRUE(job.logged(
      "rank 2 received SIGTERM, the job ends in 10.00 s: taking the last checkpoint now, up to level protected"));
}

/// A flush that is under way may take longer than the job has.
TEST(JobEnd, TheLastCheckpointDoesNotWaitForAFlush) {
  for (const WhenFull when_full : {WhenFull::block, WhenFull::fail}) {
    JobWithDeadline job;
    Gate held;
    held.close();
    job.gate = &held;
    job.options.pipeline.mode = PipelineMode::background;
    job.options.pipeline.max_pending = 1;
    job.options.pipeline.when_full = when_full;
    job.options.persistent.every = 1;
    job.options.exit.grace_s = 30;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      once(engine, scope.rank, [&] { held.await(4); });
      job.signals[2] = SIGTERM;
      EXPECT_TRUE(engine.need_checkpoint());
      commit_step(engine, scope.rank, "b", 2);
      EXPECT_TRUE(engine.should_exit());
      EXPECT_FALSE(held.is_open());
      once(engine, scope.rank, [&] { held.open(); });
      engine.finalize();
    }));
    EXPECT_EQ(reopen(job).step, 2);
  }
}

/// If there is no space for it beside what the flush needs, there is no other way.
TEST(JobEnd, TheLastCheckpointWaitsForAFlushWhereItHasNoSpaceOtherwise) {
  JobWithDeadline job;
  Gate held;
  job.gate = &held;
  job.options.pipeline.mode = PipelineMode::background;
  job.options.pipeline.max_pending = 2;
  job.options.redundancy.every = 0;
  job.options.persistent.every = 1;
  job.options.exit.grace_s = 30;
  std::atomic<std::uint64_t> container_bytes = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "first", 1);
    container_bytes = engine.counters().saved_bytes;
    engine.finalize();
  }));
  job.options.store.quota_bytes = container_bytes * 5 / 2;
  held.close();
  std::jthread opener;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.open();
    engine.close();
    commit_step(engine, scope.rank, "a", 2);
    once(engine, scope.rank, [&] { held.await(4); });
    commit_step(engine, scope.rank, "b", 3);
    EXPECT_FALSE(held.is_open());
    job.signals[1] = SIGTERM;
    EXPECT_TRUE(engine.need_checkpoint());
    once(engine, scope.rank, [&] {
      opener = std::jthread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        held.open();
      });
    });
    commit_step(engine, scope.rank, "c", 4);
    EXPECT_TRUE(held.is_open());
    engine.finalize();
  }));
  EXPECT_EQ(reopen(job).step, 4);
}

TEST(JobEnd, ALastFlushThatFailsIsLoggedAndTheJobEnds) {
  JobWithDeadline job;
  Volume full;
  full.write_errno = ENOSPC;
  const Loop loop = job.run_loop(5, [&](int rank, int step) {
    if (rank != 0 || step != 2) return;
    job.disk.set_volume("/prefix", full);
    job.signals[0] = SIGTERM;
  });
  EXPECT_EQ(loop.saved, std::vector<int>{2});
  EXPECT_EQ(loop.last_step, 2);
  EXPECT_EQ(loop.level_of_last, Level::protected_);
  EXPECT_TRUE(job.logged("step-2 is not on the parallel filesystem"));
  job.disk.set_volume("/prefix", {});
  EXPECT_EQ(reopen(job).step, 2);
}

TEST(JobEnd, BehindTheApplicationTheLastFlushGoesOnWhileTheLoopEnds) {
  JobWithDeadline job;
  job.options.pipeline.mode = PipelineMode::background;
  job.options.persistent.every = 10;
  const Loop loop = job.run_loop(8, [&](int rank, int step) {
    if (rank == 1 && step == 4) job.signals[1] = SIGTERM;
  });
  EXPECT_EQ(loop.saved, std::vector<int>{4});
  EXPECT_EQ(loop.level_of_last, Level::persistent) << "after finalize";
  EXPECT_TRUE(job.logged(", protected (xor) and persistent, "));
}

TEST(JobEnd, RanksThatMakeDifferentCallsAreToldSo) {
  JobWithDeadline job;
  const Failure failure = expect_all_failed(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (scope.rank == 1) (void)engine.should_exit();
    else (void)engine.need_checkpoint();
  }),
                                            ErrorCode::bad_state);
  EXPECT_THAT(failure.message, testing::HasSubstr("rank 1 in should_exit"));
}

/// At every message of the call that finds out, and of the one before.
TEST(JobEnd, ARankThatDiesInShouldExitHangsNobody) {
  std::uint64_t before = 0, after = 0;
  const auto body = [&](JobWithDeadline& job) {
    return [&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.should_exit();
      job.signals[3] = SIGTERM;
      EXPECT_TRUE(engine.should_exit());
      EXPECT_TRUE(engine.should_exit());
    };
  };
  {
    JobWithDeadline job;
    expect_all_returned(job.start([](RankScope& scope) { Engine engine = scope.make_engine(); }));
    before = job.events.at(1);
  }
  {
    JobWithDeadline job;
    expect_all_returned(job.start(body(job)));
    after = job.events.at(1);
  }
  ASSERT_LT(before, after);
  for (std::uint64_t event = before; event < after; ++event) {
    JobWithDeadline job;
    job.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, event, testing::StopKind::die); };
    const auto outcomes = job.start(body(job));
    EXPECT_TRUE(outcomes[1].died) << event;
    for (const int rank : {0, 2, 3}) {
      const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (outcome.returned()) continue;
      ASSERT_TRUE(outcome.failure) << rank;
      EXPECT_TRUE(outcome.failure->code == ErrorCode::rank_failed || outcome.failure->code == ErrorCode::timeout);
    }
  }
}

void note_nothing(int /*signal*/) {}

/// Ranks as threads share the process's signals: all of them heard it, and their engines share one handler.
TEST(JobEnd, EnginesOfOneProcessShareItsSignals) {
  std::signal(SIGUSR1, note_nothing);
  JobWithDeadline job;
  job.options.exit.signals = {"SIGUSR1"};
  job.real_signals = true;
  const Loop loop = job.run_loop(8, [&](int rank, int step) {
    if (rank == 1 && step == 2) std::raise(SIGUSR1);
  });
  EXPECT_EQ(loop.saved, std::vector<int>{2});
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, note_nothing) << "restored when the last engine ended";
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(JobEnd, NoSignalIsTouchedThatNobodyNamed) {
  JobWithDeadline job;
  job.real_signals = true;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    struct sigaction now {};
    EXPECT_EQ(::sigaction(SIGTERM, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
  }));
}

}  // namespace
}  // namespace kedge::faults::job_end_test
