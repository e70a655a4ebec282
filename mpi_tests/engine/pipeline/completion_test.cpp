// How an application hears what becomes of its commits, and what create does when they come faster than they are
// flushed (pipeline.when_full).
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/blocking_file_system.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "kedge/transport.hpp"
#include "pipeline/worker.hpp"

namespace kedge::faults::completion_test {
namespace {

/// In the background if the parameter is true. The prefix can be held up by `gate`.
class Completion : public FlushFixture, public testing::WithParamInterface<bool> {
 protected:
  Completion() {
    job.options.pipeline.mode = GetParam() ? PipelineMode::background : PipelineMode::inline_;
    job.surroundings = [this](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
      environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
    };
  }

  Gate gate;
  PersistentJob job{3};
};

/// What a callback heard, in words.
struct Heard {
  std::vector<std::string> words;
  [[nodiscard]] Engine::OnComplete as(const std::string& name) {
    return [this, name](const std::optional<Failure>& failure) {
      words.push_back(name + ": " + (failure ? std::string(to_string(failure->code)) : "reached"));
    };
  }
};

using Words = std::vector<std::string>;

TEST_P(Completion, EachLevelIsToldOnceInTheApplicationsThread) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Heard heard;
    const auto here = std::this_thread::get_id();
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::protected_, heard.as("protected"));
    engine.on_complete("a", Level::persistent, [&](const std::optional<Failure>& failure) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      heard.as("persistent")(failure);
    });
    EXPECT_EQ(heard.words, Words());
    engine.wait("a", Level::persistent);
    EXPECT_EQ(heard.words, (Words{"protected: reached", "persistent: reached"}));
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(heard.words.size(), 2U);
    EXPECT_EQ(code_of([&] { engine.on_complete("none", Level::local, heard.as("none")); }), ErrorCode::not_found);
  }));
}

TEST_P(Completion, WhatIsNotReachedIsToldWithTheReason) {
  job.options.persistent.every = 3;
  Volume full;
  full.write_errno = ENOSPC;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Heard heard;
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::persistent, heard.as("a"));  // not due
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(code_of([&] { engine.pin("b"); }), ErrorCode::not_found);  // when nothing is under way any more
    (void)engine.need_checkpoint();
    EXPECT_EQ(heard.words, Words{"a: not_found"}) << "b took its place";
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full); });
    commit_step(engine, scope.rank, "c", 3);
    engine.on_complete("c", Level::persistent, heard.as("c"));
    const auto failure = failure_of([&] { engine.wait("c", Level::persistent); });
    EXPECT_EQ(failure ? failure->code : ErrorCode(), ErrorCode::no_space);
    engine.on_complete("c", Level::persistent, heard.as("c again"));  // after it is known
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", {}); });
    EXPECT_EQ(heard.words, (Words{"a: not_found", "c: no_space", "c again: no_space"}));
  }));
}

TEST_P(Completion, ACallbackMakesNoCollectiveCalls) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    std::optional<ErrorCode> code;
    const auto callback = [&](const auto& /*failure*/) { code = code_of([&] { engine.create("b"); }); };
    if (scope.rank == 1) engine.on_complete("a", Level::persistent, callback);
    engine.wait("a", Level::persistent);
    EXPECT_EQ(code, scope.rank == 1 ? std::optional(ErrorCode::bad_state) : std::nullopt);
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
}

TEST_P(Completion, ALevelThatTheSchemeRulesOutIsToldAsSuch) {
  job.options.redundancy.scheme = Scheme::single;
  for (const std::uint64_t every : {0U, 1U}) {
    job.options.persistent.every = every;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      Heard heard;
      engine.on_complete("a", Level::protected_, heard.as("a"));
      commit_step(engine, scope.rank, "b", 2);
      engine.finalize();
      EXPECT_EQ(heard.words, Words{every == 0 ? "a: invalid_argument" : "a: reached"});
    }));
  }
}

/// Containers of the tag z pass one gate on their way to the prefix, those of a another.
class TwoGates final : public ForwardingFileSystem {
 public:
  TwoGates(std::shared_ptr<fs::FileSystem> inner, Gate& of_z, Gate& of_a)
      : ForwardingFileSystem(std::move(inner)), of_z_(of_z), of_a_(of_a) {}
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (path.find("/rank-") != std::string::npos && path.starts_with("/prefix/z.")) of_z_.pass();
    if (path.find("/rank-") != std::string::npos && path.starts_with("/prefix/a.")) of_a_.pass();
    return inner().create(path, mode);
  }

 private:
  Gate& of_z_;
  Gate& of_a_;
};

TEST_P(Completion, WhatLeftTheStoresWhileItWasFlushedIsToldWhenThatIsOver) {
  if (!GetParam()) GTEST_SKIP() << "inline nothing is newer than what is flushed";
  Gate of_a;
  job.surroundings = [&](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.waits_for_worker = false;
    environment.file_system = std::make_shared<TwoGates>(environment.file_system, gate, of_a);
  };
  job.options.redundancy.scheme = Scheme::single;
  job.options.pipeline.max_pending = 4;
  gate.close();
  of_a.close();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Heard heard;
    commit_step(engine, scope.rank, "z", 1);
    commit_step(engine, scope.rank, "a", 2);
    engine.on_complete("a", Level::persistent, heard.as("a"));
    commit_step(engine, scope.rank, "b", 3);
    once(engine, scope.rank, [&] {
      gate.open();
      of_a.await(3);
    });
    EXPECT_EQ(engine.level("a"), Level::none) << "b took its place before its flush began";
    (void)engine.need_checkpoint();
    EXPECT_EQ(heard.words, Words());
    once(engine, scope.rank, [&] { of_a.open(); });
    engine.wait("b", Level::persistent);
    EXPECT_EQ(heard.words, Words{"a: reached"});
  }));
}

/// What it was at may have come to its end elsewhere: nobody knows, and no callback is told.
TEST(WorkerThatFails, LeavesItsCommitsUnderWay) {
  std::shared_ptr<Communicator> communicator = single_process();
  communicator->connect(Deadline::never());
  const comm::Group group(communicator, std::chrono::seconds(10));
  const pipeline::ExecutorTasks duties{
      [](pipeline::Execution&, pipeline::Job&) { throw Error(ErrorCode::timeout, "nobody"); },
      [](pipeline::Execution&) {}, [](pipeline::Execution&) { return false; }};
  pipeline::Worker worker(
      group, {group}, [] {}, duties);
  pipeline::Job job;
  job.progress.commit.id.bytes[0] = 1;
  const Id128 id = job.progress.commit.id;
  EXPECT_FALSE(worker.backlog().may_have_commit(id));
  worker.submit(job);
  const auto is_idle = [](const pipeline::Backlog& backlog) { return backlog.is_idle(); };
  EXPECT_TRUE(worker.wait_until(is_idle, Deadline::never(), true).failure);
  EXPECT_TRUE(worker.backlog().may_have_commit(id));
}

TEST_P(Completion, FinalizeTellsTheRestAndWhatACallbackThrowsIsLogged) {
  job.options.persistent.every = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Heard heard;
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::persistent, heard.as("a"));
    engine.on_complete("a", Level::local,
                       [](const std::optional<Failure>&) { throw std::runtime_error("the application's own"); });
    engine.finalize();
    EXPECT_EQ(heard.words, Words{"a: not_found"});
  }));
  EXPECT_TRUE(job.logged("the callback for a threw: "));
}

/// It would never be told.
TEST_P(Completion, NobodyCanAskAfterTheEnd) {
  job.options.persistent.every = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Heard heard;
    commit_step(engine, scope.rank, "a", 1);
    std::optional<ErrorCode> code;
    engine.on_complete("a", Level::persistent, [&](const std::optional<Failure>& failure) {
      EXPECT_TRUE(failure);
      code = code_of([&] { engine.on_complete("a", Level::local, heard.as("in the last callback")); });
    });
    engine.finalize();
    EXPECT_EQ(code, ErrorCode::bad_state);
    EXPECT_EQ(code_of([&] { engine.on_complete("a", Level::local, heard.as("after it")); }), ErrorCode::bad_state);
    EXPECT_EQ(heard.words, Words());
  }));
}

TEST_P(Completion, ACallbackMayAskForAnother) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Heard heard;
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::local, [&](const std::optional<Failure>&) {
      engine.on_complete("a", Level::persistent, heard.as("then"));
    });
    engine.wait("a", Level::persistent);
    (void)engine.need_checkpoint();
    EXPECT_EQ(heard.words, Words{"then: reached"});
  }));
}

INSTANTIATE_TEST_SUITE_P(Pipelines, Completion, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "background" : "inline"; });

class BackgroundCompletion : public Completion {};
INSTANTIATE_TEST_SUITE_P(Pipelines, BackgroundCompletion, testing::Values(true));

TEST_P(BackgroundCompletion, WaitForGivesUpOnAllRanksAndTheEngineGoesOn) {
  gate.close();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.wait_for("a", Level::protected_, std::chrono::hours(1))) << "the flush is not waited for";
    once(engine, scope.rank, [&] { gate.await(3); });
    // Virtual time passes only when nobody can do anything, and whoever is held up could: so no time at all.
    EXPECT_FALSE(engine.wait_for("a", Level::persistent, std::chrono::seconds(0)));
    once(engine, scope.rank, [&] { gate.open(); });
    EXPECT_TRUE(engine.wait_for("a", Level::persistent, std::chrono::hours(1)));
    EXPECT_EQ(code_of([&] { (void)engine.wait_for("b", Level::local, std::chrono::seconds(1)); }),
              ErrorCode::not_found);
  }));
}

TEST_P(BackgroundCompletion, WhenFullCreateFails) {
  job.options.pipeline.when_full = WhenFull::fail;
  OnEachRank told(3);
  gate.close();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    told.put(scope.rank, failure_of([&] { engine.create("c"); }));
    once(engine, scope.rank, [&] { gate.open(); });
    engine.wait("b", Level::persistent);
    commit_step(engine, scope.rank, "c", 3);
    engine.finalize();
  }));
  ASSERT_TRUE(told.same());
  EXPECT_EQ(told.same()->code, ErrorCode::no_space);
  EXPECT_EQ(tags(job), (std::vector<Tag>{"c", "b", "a"}));
}

}  // namespace
}  // namespace kedge::faults::completion_test
