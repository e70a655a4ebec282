// should_exit and need_checkpoint when a deadline nears: by rank 0's clock and environment, by what checkpoints take,
// or what is assumed where nothing was measured, and to the level that fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "harness/blocking_file_system.hpp"
#include "harness/ending_job.hpp"
#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::deadline_test {
namespace {

using std::chrono::seconds;

/// A flush takes 20 s, a pass one: it is due at half as much again before the deadline, less the margin of 5.
TEST(JobDeadline, ADeadlineLeavesTimeForTheLastFlush) {
  JobWithDeadline job;
  job.options.schedule.every = 10;
  job.options.persistent.every = 1;
  job.options.exit.margin_s = 5;
  job.flush_s = 20;
  job.options.deadline = JobWithDeadline::moment(200);
  const Loop loop = job.run_loop(1000, [&](int rank, int) {
    if (rank == 0) job.clock->sleep_for(seconds(1));
  });
  EXPECT_EQ(loop.level_of_last, Level::persistent);
  // Five by the schedule; the one of t = 160 would have delayed the last one.
  EXPECT_EQ(loop.saved.size(), 6U);
  EXPECT_GE(loop.begun_s, 200 - 5 - 1.5 * (20 + 1)) << "no earlier than it must";
  EXPECT_LE(loop.begun_s, 200 - 5 - 1.5 * (20 + 1) + 2);
  EXPECT_LE(job.clock->seconds(), 200 - 5) << "it was done in time";
  EXPECT_TRUE(job.logged("up to level persistent (estimated 20.00 s from recent ones)"));
  EXPECT_TRUE(job.logged("the job ends in 3"));
}

TEST(JobDeadline, AnotherRanksClockDoesNotMatter) {
  for (const double skew_s : {-1e6, 1e6}) {
    JobWithDeadline job;
    job.options.persistent.every = 0;
    job.options.redundancy.scheme = Scheme::single;
    job.options.exit.margin_s = 5;
    job.skew_s = skew_s;
    job.options.deadline = JobWithDeadline::moment(100);
    const Loop loop = job.run_loop(1000, [&](int rank, int) {
      if (rank == 0) job.clock->sleep_for(seconds(1));
    });
    // 10 s are assumed for a checkpoint; then it is known that it takes none.
    ASSERT_EQ(loop.saved.size(), 2U);
    EXPECT_NEAR(loop.saved[0], 100 - 5 - 1.5 * (10 + 1), 2);
    EXPECT_NEAR(loop.begun_s, 100 - 5 - 1.5 * (0 + 1), 2);
    EXPECT_EQ(loop.level_of_last, Level::local);
  }
}

TEST(JobDeadline, WhatTheOthersWereToldOfADeadlineDoesNotMatter) {
  JobWithDeadline job;
  job.variables = {{"SLURM_JOB_END_TIME", JobWithDeadline::moment(100)}};
  job.others_variables = {{"SLURM_JOB_END_TIME", JobWithDeadline::moment(1)}};
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_TRUE(engine.should_exit());  // 80 s are assumed for a flush
  }));
  EXPECT_TRUE(
      job.logged("SLURM_JOB_END_TIME 2023-11-14T22:15:00Z (the job ends in 1 min 40 s); the last checkpoint will be "
                 "finished "));
  std::swap(job.variables, job.others_variables);
  job.variables["SLURM_JOB_END_TIME"] = JobWithDeadline::moment(100'000);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(engine.should_exit());
  }));
}

TEST(JobDeadline, ADeadlineThatIsGivenCountsInsteadOfSlurms) {
  for (const bool none : {false, true}) {
    JobWithDeadline job;
    job.variables = {{"SLURM_JOB_END_TIME", JobWithDeadline::moment(100)}};
    job.options.deadline = none ? "none" : JobWithDeadline::moment(100'000);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_FALSE(engine.should_exit());
    }));
    EXPECT_FALSE(job.logged("SLURM_JOB_END_TIME"));
  }
}

TEST(JobDeadline, AnEndBySlurmThatIsOfNoUseIsAWarning) {
  const std::map<std::string, std::string> warnings = {
      {"tomorrow", "SLURM_JOB_END_TIME is \"tomorrow\", which is not a time"},
      {"2023-11-14T22:13:30Z", "which is not a time"},
      {"-5", "which is not a time"},
      {"1e300", "which is not a time"},
      {"99999999999999999999", "which is not a time"},
      {"1699999999", "SLURM_JOB_END_TIME is 2023-11-14T22:13:19Z, which has passed"}};
  for (const auto& [value, warning] : warnings) {
    JobWithDeadline job;
    job.variables = {{"SLURM_JOB_END_TIME", value}};
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_FALSE(engine.should_exit());
    }));
    EXPECT_TRUE(job.logged(warning)) << value;
  }
}

TEST(JobDeadline, ABadDeadlineIsRefusedOnAllRanks) {
  JobWithDeadline job;
  job.options.deadline = "tomorrow";
  const Failure failure =
      expect_all_failed(job.start([](RankScope& scope) { (void)scope.make_engine(); }), ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, testing::HasSubstr("option deadline must be seconds since 1970"));
}

/// Set late, or a pass took too long: the flush, 20 s, does not fit any more, so commit does not begin it.
TEST(JobDeadline, WhereAFlushDoesNotFitTheLastCheckpointIsProtected) {
  JobWithDeadline job;
  job.options.persistent.every = 1;
  job.options.exit.margin_s = 5;
  job.flush_s = 20;
  job.options.deadline = JobWithDeadline::moment(100);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(engine.level("a"), Level::persistent);
    EXPECT_FALSE(engine.need_checkpoint());
    if (scope.rank == 0) job.clock->sleep_for(seconds(60));  // 20 are left
    EXPECT_TRUE(engine.need_checkpoint());
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::protected_);
    EXPECT_LT(job.clock->seconds(), 100);
    EXPECT_TRUE(engine.should_exit());
    engine.finalize();
    EXPECT_EQ(engine.level("b"), Level::persistent) << "finalize tries, as it always does";
  }));
  EXPECT_TRUE(
      job.logged("the job ends in 20.00 s: taking the last checkpoint now, up to level protected (estimated 0 us from "
                 "recent ones; "
                 "persistent would take 20.00 s)"));
}

/// Every commit but the tenth stays off the prefix, so that nobody knows what a flush takes.
TEST(JobDeadline, WhatWasNotMeasuredIsMeasuredBeforeTheJobEndsByAnAssumption) {
  JobWithDeadline job;
  job.options.persistent.every = 10;
  job.options.exit.margin_s = 5;
  job.flush_s = 20;
  job.options.deadline = JobWithDeadline::moment(400);
  const Loop loop = job.run_loop(1000, [&](int rank, int) {
    if (rank == 0) job.clock->sleep_for(seconds(1));
  });
  ASSERT_EQ(loop.saved.size(), 2U);
  EXPECT_NEAR(loop.saved[0], 400 - 5 - 1.5 * (80 + 1), 2);
  EXPECT_NEAR(loop.begun_s, 400 - 5 - 1.5 * (20 + 1), 2);
  EXPECT_EQ(loop.level_of_last, Level::persistent);
  EXPECT_TRUE(job.logged("taking a checkpoint to level persistent now, to measure how long the last one will take"));
}

TEST(JobDeadline, ACheckpointThatWasToMeasureAndFailedIsNotWaitedFor) {
  JobWithDeadline job;
  job.options.deadline = JobWithDeadline::moment(120);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_TRUE(engine.need_checkpoint());
    EXPECT_FALSE(engine.should_exit());
    engine.create("a");
    if (scope.rank == 1) (void)engine.save("", {});
    EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
    EXPECT_TRUE(engine.need_checkpoint());
    EXPECT_TRUE(engine.should_exit());
  }));
}

/// In the background, where the flush of the checkpoint that measures is held up.
struct MeasuringJob : JobWithDeadline {
  MeasuringJob(int deadline_s, double margin_s) {
    held.close();
    gate = &held;
    options.pipeline.mode = PipelineMode::background;
    options.persistent.every = 10;
    options.exit.margin_s = margin_s;
    options.deadline = moment(deadline_s);
  }
  Gate held;
};

TEST(JobDeadline, BehindTheApplicationACheckpointThatMeasuresIsWaitedForAsLongAsThereIsTime) {
  for (const int round : {0, 1, 2, 3}) {
    const bool is_late = round % 2 != 0;
    MeasuringJob job(92, 5);
    job.options.redundancy.every = round < 2 ? 1 : 0;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_TRUE(engine.need_checkpoint());
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_FALSE(engine.should_exit());
      (void)engine.wait_for("a", Level::local, seconds(0));
      if (scope.rank == 0 && is_late) job.clock->sleep_for(seconds(50));
      EXPECT_EQ(engine.need_checkpoint(), is_late);
      EXPECT_EQ(engine.should_exit(), is_late);
      job.held.open();
      engine.wait("a", Level::persistent);
      EXPECT_EQ(engine.need_checkpoint(), is_late);
    }));
  }
}

/// A flush that was never measured is assumed to take longer than there is time, but the one that measures is already
/// on its way.
TEST(JobDeadline, WhileTheCheckpointThatMeasuresIsOnItsWayTheJobGoesOn) {
  MeasuringJob job(60, 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_TRUE(engine.need_checkpoint());
    commit_step(engine, scope.rank, "a", 1);
    for (int pass = 0; pass < 20; ++pass) {
      EXPECT_FALSE(engine.should_exit());
      if (scope.rank == 0) job.clock->sleep_for(seconds(1));
      EXPECT_FALSE(engine.need_checkpoint()) << "in pass " << pass;
    }
    job.held.open();
    engine.wait("a", Level::persistent);
    EXPECT_FALSE(engine.need_checkpoint()) << "it was measured by now";
    if (scope.rank == 0) job.clock->sleep_for(seconds(37));
    EXPECT_TRUE(engine.need_checkpoint());
    EXPECT_TRUE(engine.should_exit());
  }));
}

TEST(JobDeadline, ADeadlineInThePastEndsTheJobAfterItsFirstPass) {
  JobWithDeadline job;
  job.options.deadline = JobWithDeadline::moment(-7200);
  const Loop loop = job.run_loop(5);
  EXPECT_EQ(loop.saved, std::vector<int>{1});
  EXPECT_EQ(loop.last_step, 1);
  EXPECT_EQ(loop.level_of_last, Level::local);
  EXPECT_TRUE(job.logged("the job's deadline was 2 h 0 min ago: taking the last checkpoint now, up to level local"));
  EXPECT_TRUE(job.logged("this may not finish in time"));
}

}  // namespace
}  // namespace kedge::faults::deadline_test
