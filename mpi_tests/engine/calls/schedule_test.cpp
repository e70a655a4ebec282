// need_checkpoint by calls, by time and by what checkpoints cost.
#include "engine/schedule.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "base/attempt.hpp"
#include "harness/several_starts.hpp"
#include "harness/watched_communicator.hpp"

namespace kedge::faults::schedule_test {
namespace {

using Schedule = engine::CheckpointSchedule;

Options::Schedule of(std::uint64_t every, double seconds, double overhead) { return {every, seconds, overhead}; }

TEST(Schedule, ByCallsAndOnlyThen) {
  Schedule schedule(of(3, 1, 0.5), 0);
  for (int call = 1; call <= 9; ++call) EXPECT_EQ(schedule.is_due(1000.0 * call), call % 3 == 0) << call;
}

TEST(Schedule, NeverIfNothingSaysWhen) {
  Schedule schedule(of(0, 0, 0), 0);
  EXPECT_FALSE(schedule.is_due(1e9));
}

TEST(Schedule, BySeconds) {
  Schedule schedule(of(0, 60, 0), 100);
  EXPECT_FALSE(schedule.is_due(159.9));
  EXPECT_TRUE(schedule.is_due(160));
  EXPECT_TRUE(schedule.is_due(161)) << "until there is one";
  schedule.committed(5, 170);
  EXPECT_FALSE(schedule.is_due(229));
  EXPECT_TRUE(schedule.is_due(230));
}

TEST(Schedule, ByTheirShareOfTheRunTimeAndTheFirstAtOnce) {
  Schedule schedule(of(0, 0, 0.01), 0);
  EXPECT_TRUE(schedule.is_due(0.1));
  schedule.committed(2, 10);
  EXPECT_FALSE(schedule.is_due(209));
  EXPECT_TRUE(schedule.is_due(210.1));
  schedule.committed(0.5, 300);
  EXPECT_FALSE(schedule.is_due(349));
  EXPECT_TRUE(schedule.is_due(350.1));
}

TEST(Schedule, AtLeastAsOftenAsSecondsSayHoweverMuchTheyCost) {
  Schedule schedule(of(0, 3600, 0.01), 0);
  schedule.committed(100, 0);  // would be due after 10000 s
  EXPECT_FALSE(schedule.is_due(3599));
  EXPECT_TRUE(schedule.is_due(3600));
}

TEST(Schedule, AFailedOneCostsTimeAsWell) {
  Schedule schedule(of(0, 0, 0.01), 0);
  schedule.failed(2, 10);
  EXPECT_FALSE(schedule.is_due(209));
  EXPECT_TRUE(schedule.is_due(210.1));
  schedule.failed(0.001, 300);
  EXPECT_FALSE(schedule.is_due(499)) << "it may fail as late as the one before";
  EXPECT_TRUE(schedule.is_due(500.1));
}

/// How often in 50 steps a checkpoint is due that `fails`. Each message of rank 0 takes a second of virtual time, so
/// that it costs some.
int due_while_all_fail(SimulatedJob& job, const std::function<void(Engine&)>& fails) {
  job.options.schedule = of(0, 0, 0.01);
  const auto clock = std::make_shared<FakeClock>();
  job.surroundings = [&](int, start::Environment& environment) { environment.clock = clock; };
  job.in_front = [&](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
    if (rank != 0) return own;
    return std::make_unique<kedge::testing::WatchedCommunicator>(
        std::move(own), [&](Deadline) { clock->sleep_for(std::chrono::seconds(1)); });
  };
  int due = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 0; step < 50; ++step) {
      if (!engine.need_checkpoint()) continue;
      if (scope.rank == 0) ++due;
      EXPECT_THROW(fails(engine), Error);
    }
  }));
  return due;
}

TEST(Schedule, WhileAllFailItIsNotDueAtEveryCall) {
  SimulatedJob job(2);
  const int due = due_while_all_fail(job, [](Engine& engine) {
    engine.create("a");
    const double value = 0;
    (void)engine.save("twice", {&value, DataType::float64, {}});
    (void)engine.save("twice", {&value, DataType::float64, {}});
    engine.commit();
  });
  EXPECT_GE(due, 1);
  EXPECT_LT(due, 10);
}

TEST(Schedule, WhileAllAreRefusedAtTheirBeginItIsNotDueAtEveryCall) {
  SimulatedJob job(2);
  job.options.store.quota_bytes = 65536;
  const int due = due_while_all_fail(job, [](Engine& engine) {
    std::vector<double> large(100000);
    State state;
    state.add("large", large);
    engine.checkpoint("a", state);
  });
  EXPECT_GE(due, 1);
  EXPECT_LT(due, 10);
}

/// What was refused as misuse is no checkpoint that failed.
TEST(Schedule, AMistypedTagOrACallOutOfOrderDelaysNothing) {
  SimulatedJob job(2);
  EXPECT_EQ(due_while_all_fail(job, [](Engine& engine) { engine.create("not a tag"); }), 50);
  SimulatedJob other(2);
  const auto create_twice = [](Engine& engine) {
    engine.create("a");
    const auto refused = attempt([&] { engine.create("b"); });
    engine.abandon();
    if (refused) throw Error(*refused);
  };
  EXPECT_EQ(due_while_all_fail(other, create_twice), 50);
}

TEST(Schedule, IsTheSameOnAllRanksByDefault) {
  SimulatedJob job(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_TRUE(engine.need_checkpoint());
    commit_step(engine, scope.rank, "a", 1);  // costs no virtual time
    EXPECT_TRUE(engine.need_checkpoint());
  }));
  job.options.schedule.overhead = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(engine.need_checkpoint());
  }));
}

}  // namespace
}  // namespace kedge::faults::schedule_test
