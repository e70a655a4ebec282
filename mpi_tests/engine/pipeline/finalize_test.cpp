// finalize with a limit: everything is done in time, or nothing is lost, and outputs that are in the stores alone are
// named; finalize_if_all_come gives up where ranks do not come.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/blocking_file_system.hpp"
#include "harness/deferred_work_fixture.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/outputs_fixture.hpp"
#include "harness/real_run.hpp"
#include "harness/several_starts.hpp"
#include "kedge/transport.hpp"

namespace kedge::faults::finalize_test {
namespace {

constexpr std::chrono::hours kLong{1};

class Finalize : public FlushFixture {
 protected:
  Finalize() {
    job.options.pipeline.mode = PipelineMode::background;
    job.options.log.sink = [this](LogLevel, std::string_view line) {
      const std::lock_guard guard(mutex);
      log += std::string(line) + '\n';
    };
    job.surroundings = [this](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = waits_for_worker;
      environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
    };
  }
  /// Opens the gate once rank 0 has said that it waits no longer: a write that has begun is waited for.
  void open_when_given_up() {
    opener = std::thread([this] {
      while (!has_said("finalize stopped waiting")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      gate.open();
    });
  }
  [[nodiscard]] bool has_said(std::string_view words) {
    const std::lock_guard guard(mutex);
    return log.find(words) != std::string::npos;
  }
  void TearDown() override {
    if (opener.joinable()) opener.join();
  }
  Gate gate;
  std::thread opener;
  std::mutex mutex;
  std::string log;
  bool waits_for_worker = false;
  PersistentJob job{4};
};

TEST_F(Finalize, InTimeEverythingIsPersistent) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.finalize_for(kLong));
    EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
  }));
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, IfAllComeItIsAnOrderlyEnd) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 0) {
      engine.finalize();  // one need not know of the others' way
    } else {
      EXPECT_TRUE(engine.finalize_if_all_come(kLong));
    }
    EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
  }));
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, IfOneDoesNotComeNothingIsLost) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 2) return;
    EXPECT_FALSE(engine.finalize_if_all_come(std::chrono::milliseconds(50)));
  }));
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, IfOthersAreInAnotherCallAllHearOfIt) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 2) {
      EXPECT_FALSE(engine.finalize_if_all_come(kLong));
    } else {
      EXPECT_EQ(code_of([&] { engine.create("b"); }), ErrorCode::bad_state);
    }
  }));
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, TheNewestIsFlushedByTheWorker) {
  job.options.persistent.every = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.finalize_for(kLong));
  }));
  EXPECT_TRUE(has_said("a of run 'test' is persistent")) << log;
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, InlineNothingIsGivenUp) {
  job.options.pipeline.mode = PipelineMode::inline_;
  job.options.persistent.every = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.finalize_for(std::chrono::seconds(0)));
  }));
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

// How long it took since the commit says nothing of what was not due with it.
TEST_F(Finalize, AFlushThatWasLeftForTheEndCountsNoTime) {
  job.options.persistent.every = 3;
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    job.options.pipeline.mode = mode;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_TRUE(engine.finalize_for(std::chrono::hours(1)));
      EXPECT_EQ(engine.counters().flushes, 1U);
      EXPECT_EQ(engine.counters().persistent_last_s, 0);
      EXPECT_GT(engine.counters().flushed_bytes, 0U);
    }));
  }
}

TEST_F(Finalize, SaysThatTheNewestCouldNotBeFlushed) {
  Volume full;
  full.write_errno = ENOSPC;
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    job.options.pipeline.mode = mode;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full); });
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_FALSE(engine.finalize_for(kLong));
      EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
    }));
    EXPECT_TRUE(has_said("the newest checkpoint, a, is only in the node-local stores. To flush it")) << log;
    job.disk.set_volume("/prefix", {});
    log.clear();
  }
}

// What has no time any more is not begun: it would only be cut.
TEST_F(Finalize, WithoutTimeNoFlushBegins) {
  job.options.persistent.every = 3;
  waits_for_worker = true;  // what follows protection is over, too
  gate.close();             // a flush that began would still be under way
  open_when_given_up();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_FALSE(engine.finalize_for(std::chrono::seconds(0)));
    const auto after = failure_of([&] { engine.create("after"); });
    EXPECT_EQ(after ? after->message : "", "this engine was finalized; create a new one") << "nothing was cut";
  }));
  EXPECT_TRUE(has_said("finalize stopped waiting at once with work left: a is only protected")) << log;
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, WithoutTimeItNamesTheOutputsThatAreNotOnThePrefix) {
  job.options.pipeline.max_pending = 4;
  for (const bool has_checkpoint : {true, false}) {
    gate.close();
    open_when_given_up();
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (has_checkpoint) commit_step(engine, scope.rank, "a", 1);
      write_output(engine, scope.rank, "p1", 7);
      write_output(engine, scope.rank, "p2", 8);
      EXPECT_FALSE(engine.finalize_for(std::chrono::seconds(0)));
    }));
    EXPECT_TRUE(has_said("2 of the outputs are only in the node-local stores (p1, p2). To flush")) << log;
    EXPECT_EQ(has_said("the newest checkpoint"), false) << log;
    opener.join();
    lose_stores(job, {0, 1, 2, 3});
    job.disk.remove_all("/prefix");
    job.disk.make_directories("/prefix", 0755);
    log.clear();
  }
}

/// The flush of a commit that is due, and of one that was left for the end.
class FinalizeGivesUp : public Finalize, public testing::WithParamInterface<int> {};

TEST_P(FinalizeGivesUp, AndTheNextStartHasTheNewestCommit) {
  job.options.persistent.every = static_cast<std::uint64_t>(GetParam());
  job.options.store.on_exit = OnExit::remove_if_persistent;
  gate.close();
  open_when_given_up();
  std::vector<std::string> heard(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::persistent, [&](const std::optional<Failure>& failure) {
      heard[static_cast<std::size_t>(scope.rank)] = failure ? failure->message : "reached";
    });
    if (GetParam() == 1) once(engine, scope.rank, [&] { gate.await(4); });
    engine.create("b");
    EXPECT_FALSE(engine.finalize_for(std::chrono::seconds(0)));
    EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
  }));
  for (const std::string& words : heard)
    EXPECT_NE(words.find("was finalized before a was persistent"), std::string::npos) << words;
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "a");
  EXPECT_EQ(opened.step, 1);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, FinalizeGivesUp, testing::Values(1, 3));

/// Tells when the worker has ended, which the engine may have left to itself.
class ReportsThreadEnd final : public testing::ForwardingCommunicator {
 public:
  ReportsThreadEnd(std::unique_ptr<Communicator> owned, std::shared_ptr<std::promise<void>> over)
      : ForwardingCommunicator(*owned), owned_(std::move(owned)), over_(std::move(over)) {}
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override {
    return std::make_unique<ReportsThreadEnd>(inner().duplicate(deadline), over_);
  }
  [[nodiscard]] std::unique_ptr<Thread> start_thread(std::function<void()> body) override {
    return inner().start_thread([body = std::move(body), over = over_] {
      body();
      over->set_value();
    });
  }

 private:
  std::unique_ptr<Communicator> owned_;
  std::shared_ptr<std::promise<void>> over_;
};

/// A write that hangs for longer than the end of an engine waits is left alone, with all that it uses, the store's lock
/// among it.
TEST(FinalizeAlone, AWriteThatHangsIsLeftBehind) {
  const RealRun run("hangs");
  Gate& gate = *new Gate;  // the thread that is left may use it to the end
  gate.close();
  engine::EngineEnvironment environment = start::Environment::system();
  environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
  const auto promise = std::make_shared<std::promise<void>>();
  const std::future<void> over = promise->get_future();  // before that, its directory cannot be removed
  auto communicator = std::make_unique<ReportsThreadEnd>(single_process(), promise);
  std::optional<Engine> engine(
      engine::EngineEnvironment::make_engine(std::move(communicator), run.options, environment));
  int step = 1;
  State state;
  state.add("step", step);
  engine->checkpoint("a", state);
  gate.await(1);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(engine->finalize_for(std::chrono::seconds(0)));
  engine.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(19)) << "it was waited for twice";
  EXPECT_EQ(code_of([&] { const Engine next(single_process(), run.options); }), ErrorCode::busy);
  gate.open();
  EXPECT_EQ(over.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it did not end by itself";
}

class FinalizeProtects : public DeferredWorkFixture {};

/// Nothing has to get to the prefix, and protection is under way.
TEST_F(FinalizeProtects, GivesUpOnProtectionToo) {
  block_new_parity();
  const std::jthread opener([this] {  // a file that is being made is waited for
    for (int turn = 0; turn < 1000 && !job.logged("finalize stopped waiting"); ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    gate.open();
  });
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { gate.await(4); });
    EXPECT_FALSE(engine.finalize_for(std::chrono::seconds(0)));
  }));
  EXPECT_EQ(reopen(job).step, 1);
}

}  // namespace
}  // namespace kedge::faults::finalize_test
