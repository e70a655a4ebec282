// How an engine ends while a commit is being protected or flushed in the background: by a later start, a death at any
// message, an exception, or its destruction; on all ranks, and nothing that commit returned for is lost.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/blocking_file_system.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/real_run.hpp"
#include "harness/several_starts.hpp"
#include "kedge/transport.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::faults::background_ends_test {
namespace {

class BackgroundEnds : public FlushFixture {
 protected:
  BackgroundEnds() {
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
    };
  }
  PersistentJob job{4};
};

TEST_F(BackgroundEnds, AnEngineDestroyedWithWorkUnderWayLosesNoCommit) {
  Gate gate;
  gate.close();
  job.surroundings = [&](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
  };
  std::thread opener;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) {
      gate.await(4);
      opener = std::thread([&] {  // a write that is under way is waited for
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
      });
    }
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "b", 2);
  }));
  opener.join();
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_EQ(opened.tag, "b");
  EXPECT_EQ(opened.step, 2);
  EXPECT_EQ(reopen(job).step, 3);
}

TEST_F(BackgroundEnds, ByAnException) {
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 2) throw std::runtime_error("the application's own");
    commit_step(engine, scope.rank, "b", 2);
  });
  EXPECT_TRUE(outcomes[2].exception);
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(BackgroundEnds, ByMovingAnotherIntoIt) {
  job.options.open.chained = true;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    engine.finalize();
    Engine other = scope.make_engine();
    engine = std::move(other);
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  EXPECT_EQ(reopen(job).step, 2);
}

/// The child of a fork, such as one that loads data, has no worker, and must not wait for one.
TEST(BackgroundFork, AChildLetsGoOfTheEngineAndTheParentGoesOn) {
  const RealRun run("fork");
  {
    std::optional<Engine> engine(std::in_place, single_process(), run.options);
    std::vector<double> large(std::size_t{1} << 20U, 1);
    State state;
    state.add("large", large);
    for (int step = 1; step <= 10; ++step) {
      engine->checkpoint("step-" + std::to_string(step), state);
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(5);  // a child that hangs is killed
        const bool refused = code_of([&] { engine->checkpoint("child", state); }) == ErrorCode::bad_state &&
                             code_of([&] { (void)engine->level("step-1"); }) == ErrorCode::bad_state &&
                             code_of([&] { (void)engine->counters(); }) == ErrorCode::bad_state &&
                             code_of([&] { engine->finalize(); }) == ErrorCode::bad_state;
        engine->pause();
        engine->resume();
        engine.reset();
        ::_exit(refused ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "in step " << step << ", status " << status;
    }
    engine->wait("step-10", Level::persistent);
    engine->finalize();
  }
}

/// All ranks hear in the same call that a later start has taken over, whichever of them heard of it first.
TEST_F(BackgroundEnds, ByALaterStart) {
  OnEachRank told(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "x", 1);
    engine.wait("x", Level::persistent);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) {
      persist::RunStart later({job.disk.view(0), "/prefix", "test"});
      (void)later.take_incarnation();
      later.mark_begun({});
    }
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "y", 2);
    // The worker has heard of it on some ranks.
    auto failure = failure_of([&] { commit_step(engine, scope.rank, "z", 3); });
    if (!failure) failure = failure_of([&] { engine.wait("z", Level::persistent); });
    told.put(scope.rank, failure);
    EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
  }));
  ASSERT_TRUE(told.same());
  EXPECT_EQ(told.same()->code, ErrorCode::busy);
}

/// A rank dies in the middle of what its worker does: the others hear of it in one of their next calls, and the next
/// start has the newest commit that returned.
TEST_F(BackgroundEnds, ByTheDeathOfARankAtAnyMessage) {
  std::uint64_t total = 0;
  for (std::uint64_t event = 0;; event += total == 0 ? 100'000 : total / 40 + 1) {
    SCOPED_TRACE(event);
    SimulatedJob one(3);
    one.options = job.options;
    one.ranks_per_node = job.ranks_per_node;
    one.options.log.sink = [](LogLevel, std::string_view) {};
    one.surroundings = job.surroundings;
    if (total != 0)
      one.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, event % total, testing::StopKind::die); };
    int returned = 0;
    const auto outcomes = one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 4; ++step) {
        commit_step(engine, scope.rank, "step-" + std::to_string(step), step);
        if (scope.rank == 0) returned = step;
      }
      engine.finalize();
    });
    if (total == 0) {
      expect_all_returned(outcomes);
      total = one.events[1];
      ASSERT_GT(total, 400U);
      event = 0;
      continue;
    }
    const Opened opened = reopen(one);
    EXPECT_GE(opened.tag ? opened.step : 0, returned) << to_string(opened.failure.value_or(Failure{}));
    if (event + total / 40 + 1 >= total || HasFailure()) break;
  }
}

}  // namespace
}  // namespace kedge::faults::background_ends_test
