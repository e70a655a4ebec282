// Flushes that fail in the background: tried again, as long as nobody waits for something newer, and recorded for kedge
// ls; a worker that hangs is named.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/real_run.hpp"
#include "harness/several_starts.hpp"
#include "kedge/transport.hpp"
#include "store/failed_flush.hpp"

namespace kedge::faults::failed_flush_test {
namespace {

/// Of one rank: calls `meet` before a container of this tag is made on the prefix.
class MeetingFileSystem final : public ForwardingFileSystem {
 public:
  MeetingFileSystem(std::shared_ptr<fs::FileSystem> inner, std::string tag, std::function<void()> meet)
      : ForwardingFileSystem(std::move(inner)),
        directory_(tag.empty() ? "/prefix/" : "/" + tag + "."),
        meet_(std::move(meet)) {}
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (path.find(directory_) != std::string::npos && path.find("/rank-") != std::string::npos) meet_();
    return inner().create(path, mode);
  }

 private:
  std::string directory_;
  std::function<void()> meet_;
};

class FailedFlush : public FlushFixture {
 protected:
  FailedFlush() {
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
    };
  }
  /// So many flushes of the tag, or of any if it is empty, fail on rank 2 alone.
  void fail(const std::string& tag, int times, ErrorCode code = ErrorCode::no_space) {
    left = times;
    job.surroundings = [this, tag, code](int rank, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
      if (rank != 2) return;
      environment.file_system = std::make_shared<MeetingFileSystem>(environment.file_system, tag, [this, code] {
        ++tries;
        if (left > 0 && left-- > 0) throw Error(code, "as the test has it");
      });
    };
  }
  [[nodiscard]] std::optional<store::FailedFlush> record() {
    return store::read_failed_flush(*job.disk.view(0), run_directory_of(job.disk, "node0"));
  }

  PersistentJob job{4};
  std::atomic<int> left = 0;
  std::atomic<int> tries = 0;
};

TEST_F(FailedFlush, IsTriedAgainUntilItSucceeds) {
  fail("a", 3);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    const Counters counters = engine.counters();
    EXPECT_EQ(counters.flush_retries, 3U);
    EXPECT_EQ(counters.flushes, 1U);
    EXPECT_EQ(counters.flushes_failed, 0U);
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{"a"});
  EXPECT_FALSE(job.logged("not on the parallel filesystem"));
  EXPECT_EQ(record(), std::nullopt);
}

TEST_F(FailedFlush, IsGivenUpAfterTheLastTryAndRecordedUntilANewerOneSucceeds) {
  job.options.persistent.retries = 2;
  fail("a", 100);
  OnEachRank told(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    told.put(scope.rank, failure_of([&] { engine.wait("a", Level::persistent); }));
    EXPECT_EQ(engine.counters().flush_retries, 2U);
    EXPECT_EQ(engine.counters().flushes_failed, 2U) << "with the one in wait";
    EXPECT_EQ(engine.level("a"), Level::protected_);
    if (scope.rank == 0) {
      const auto failed = record();
      ASSERT_TRUE(failed);
      EXPECT_EQ(failed->tag, "a");
      EXPECT_EQ(failed->generation % 1'000'000, 1U);
      EXPECT_TRUE(says(failed->reason, {"no_space", "rank 2", "as the test has it"})) << failed->reason;
    }
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
  }));
  ASSERT_TRUE(told.same());
  EXPECT_EQ(told.same()->code, ErrorCode::no_space);
  EXPECT_EQ(tries, 4);
  EXPECT_TRUE(job.logged("a is not on the parallel filesystem (tried 3 times): no_space on rank 2"));
  EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
  EXPECT_EQ(record(), std::nullopt);
}

TEST_F(FailedFlush, IsNotTriedAgainIfThatCannotHelpOrIsNotWanted) {
  for (const auto& [code, retries] : {std::pair{ErrorCode::corrupt, 5U}, std::pair{ErrorCode::io, 0U}}) {
    job.options.persistent.retries = retries;
    fail("a", 100, code);
    tries = 0;
    expect_all_returned(job.start([&, expected = code](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_EQ(code_of([&] { engine.wait("a", Level::persistent); }), expected);
    }));
    EXPECT_EQ(tries, 2) << to_string(code) << ", and once in wait";
  }
}

TEST_F(FailedFlush, ANewerCommitEndsTheRetries) {
  job.options.persistent.retries = 1000;
  fail("a", 5000);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
    EXPECT_EQ(engine.counters().flush_retries, 0U);
    EXPECT_EQ(engine.counters().flushes_failed, 1U);
  }));
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
}

TEST_F(FailedFlush, FinalizeAndTheEndOfAnEngineEndTheRetries) {
  job.options.persistent.retries = 1000;
  for (const bool finalizes : {true, false}) {
    fail("a", 5000);
    tries = 0;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      if (finalizes) engine.finalize();
    }));
    EXPECT_LE(tries, finalizes ? 2 : 1);
    if (finalizes) {
      EXPECT_TRUE(record()) << "for whoever looks after the job";
    }
  }
}

/// One container in the stores, and none waiting: create needs the room that the retries would keep.
TEST_F(FailedFlush, ACreateThatWaitsForRoomEndsTheRetries) {
  job.options.persistent.retries = 1000;
  job.options.pipeline.max_pending = 1;
  fail("a", 5000);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
  }));
  EXPECT_EQ(tries, 1);
}

TEST_F(FailedFlush, TheRecordGoesWithItsCommit) {
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    job.options.pipeline.mode = mode;
    job.options.persistent.every = 0;
    fail("a", 100);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_EQ(code_of([&] { engine.wait("a", Level::persistent); }), ErrorCode::no_space);
    }));
    ASSERT_TRUE(record());
    EXPECT_EQ(record()->tag, "a");
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      engine.close();
      EXPECT_TRUE(scope.rank != 0 || record()) << "it is still there, and not on the prefix";
      commit_step(engine, scope.rank, "b", 2);
      engine.finalize();
    }));
    EXPECT_EQ(record(), std::nullopt) << "b took the place of a";
    job.disk.remove_all("/nodes");
    job.disk.remove_all("/prefix");
    for (const char* directory : {"/nodes", "/prefix"}) job.disk.make_directories(directory, 0755);
  }
}

TEST_F(FailedFlush, TheRecordGoesWhenTheCommitIsPersistentAfterAll) {
  job.options.persistent.every = 0;
  fail("a", 1);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(code_of([&] { engine.wait("a", Level::persistent); }), ErrorCode::no_space);
    EXPECT_TRUE(scope.rank != 0 || record());
    engine.wait("a", Level::persistent);
    EXPECT_TRUE(scope.rank != 0 || !record());
  }));
}

TEST_F(FailedFlush, TheRecordIsOfTheNewest) {
  job.options.persistent.every = 0;
  job.options.store.keep = 2;
  fail("", 100);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    for (const char* tag : {"b", "a"}) {
      EXPECT_EQ(code_of([&] { engine.wait(tag, Level::persistent); }), ErrorCode::no_space);
    }
  }));
  ASSERT_TRUE(record());
  EXPECT_EQ(record()->tag, "b");
}

TEST(FailedFlushRecord, DamageIsNoRecord) {
  const store::FailedFlush failed{*parse_id("0123456789abcdef0123456789abcdef"), 7, "a", 5, 2, "no_space: \xff full"};
  const std::string text = store::to_text(failed);
  auto read = store::parse_failed_flush(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->commit_id, failed.commit_id);
  EXPECT_EQ(read->tries, 2U);
  for (const std::string& damaged : {text.substr(0, text.size() / 2), std::string("[]"), std::string("{\"tag\": 1}")}) {
    EXPECT_EQ(store::parse_failed_flush(damaged), std::nullopt) << damaged;
  }
}

/// In real time: the end of an engine does not wait for the next try.
TEST(FailedFlushInRealTime, TheEndOfAnEngineIsNotHeldUp) {
  const RealRun run("failed-flush");
  std::atomic<int> tries = 0;
  engine::EngineEnvironment environment = start::Environment::system();
  environment.file_system = std::make_shared<MeetingFileSystem>(environment.file_system, "a", [&] {
    ++tries;
    throw Error(ErrorCode::io, "as the test has it");
  });
  std::optional<Engine> engine(engine::EngineEnvironment::make_engine(single_process(), run.options, environment));
  commit_value(*engine, "a", 1);
  while (tries < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the next one comes in 2 s
  const auto begin = std::chrono::steady_clock::now();
  engine.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  EXPECT_EQ(tries, 2);
}

/// What the worker of one rank waits for, in virtual time, until it is released.
struct Hang {
  std::unique_ptr<Communicator::Signal> signal;
  std::atomic<bool> is_over = false;
  void meet() {
    while (!is_over) {
      try {
        (void)signal->wait(Deadline::never());
      } catch (const Error&) {  // everybody waits: time stands still
      }
    }
  }
  void end() {
    is_over = true;
    signal->raise();
  }
};

/// The application of that rank goes on, and makes the next call with the others.
TEST_F(FailedFlush, AWorkerThatHangsIsNamedByTheNextCall) {
  for (const int hung : {1, 3}) {
    Hang hang;
    job.surroundings = [&](int rank, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
      if (rank != hung) return;
      environment.file_system = std::make_shared<MeetingFileSystem>(environment.file_system, "a", [&] { hang.meet(); });
    };
    OnEachRank told(4);
    expect_all_returned(job.start([&](RankScope& scope) {
      if (scope.rank == hung) hang.signal = scope.communicator.signal();
      std::optional<Engine> engine(scope.make_engine());
      commit_step(*engine, scope.rank, "a", 1);
      // Until the workers of the others have given up and nobody moves.
      const auto never = scope.communicator.signal();
      EXPECT_EQ(code_of([&] { (void)never->wait(Deadline::never()); }), ErrorCode::bad_state);
      told.put(scope.rank, failure_of([&] { engine->create("b"); }));
      if (scope.rank == hung) hang.end();
      engine.reset();
    }));
    ASSERT_TRUE(told.same());
    EXPECT_EQ(told.same()->code, ErrorCode::timeout);
    EXPECT_TRUE(says(told.same()->message, {"rank " + std::to_string(hung)})) << told.same()->message;
  }
}

}  // namespace
}  // namespace kedge::faults::failed_flush_test
