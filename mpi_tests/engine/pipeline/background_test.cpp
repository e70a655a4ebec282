// Commits that are protected and flushed while the application goes on, without any call of it: what waits for what,
// how many files there are, what makes up for a failed flush, and where one thread may use the messages.
#include <gmock/gmock.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "harness/blocking_file_system.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::background_test {
namespace {

/// The system gives no second thread.
class WithoutThreads final : public testing::ForwardingCommunicator {
 public:
  explicit WithoutThreads(std::unique_ptr<Communicator> owned)
      : ForwardingCommunicator(*owned), owned_(std::move(owned)) {}
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override {
    return std::make_unique<WithoutThreads>(inner().duplicate(deadline));
  }
  [[nodiscard]] std::unique_ptr<Thread> start_thread(std::function<void()> /*body*/) override {
    throw std::system_error(EAGAIN, std::generic_category());
  }

 private:
  std::unique_ptr<Communicator> owned_;
};

/// The prefix can be held up by `gate`.
class Background : public FlushFixture {
 protected:
  Background() {
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [this](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
      environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
    };
  }

  Gate gate;
  PersistentJob job{4};
};

TEST_F(Background, CommitReturnsWhileItIsFlushed) {
  gate.close();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { gate.await(4); });
    EXPECT_EQ(engine.level("a"), Level::protected_);  // parity comes first
    once(engine, scope.rank, [&] { EXPECT_FALSE(gate.is_open()); });
    once(engine, scope.rank, [&] { gate.open(); });
    engine.wait("a", Level::persistent);
    EXPECT_EQ(engine.level("a"), Level::persistent);
  }));
  EXPECT_TRUE(job.logged("on 4 ranks, protected (xor) and persistent, blocked "));
  EXPECT_EQ(tags(job), std::vector<Tag>{"a"});
}

/// An application that computes and never calls again.
TEST_F(Background, GoesOnWithoutAnyCall) {
  std::atomic<int> on_ranks = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (engine.level("a") != Level::persistent && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(engine.level("a"), Level::persistent);
    ++on_ranks;  // an engine that is destroyed cuts off the workers of ranks that have not heard of the flush yet
    while (on_ranks < 4 && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{"a"});
}

TEST_F(Background, AnotherCheckpointIsWrittenMeanwhileAndTheNextWaits) {
  gate.close();
  std::thread opener;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::local);
    once(engine, scope.rank, [&] {
      gate.await(4);
      opener = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
      });
    });
    commit_step(engine, scope.rank, "c", 3);  // pipeline.max_pending is 2
    EXPECT_TRUE(gate.is_open());
    engine.wait("c", Level::persistent);
    EXPECT_EQ(engine.level("a"), Level::none) << "superseded by what was protected since";
    EXPECT_EQ(container_files(job.disk, scope.rank).size(), 3U);  // store.keep and pipeline.max_pending
  }));
  opener.join();
  EXPECT_EQ(tags(job), (std::vector<Tag>{"c", "b", "a"}));
  EXPECT_EQ(reopen(job).step, 3);
}

TEST_F(Background, WithoutSpaceTheErrorSaysWhatStaysAndWhy) {
  job.options.pipeline.max_pending = 3;
  const std::string not_protected = " stays beside newer commits because none of them is protected yet";
  // b is that of the case before, which may stay, too.
  const auto a_or_b =
      testing::AnyOf(testing::EndsWith("; a" + not_protected), testing::EndsWith("; b" + not_protected));
  struct Case {
    Scheme scheme;
    std::uint32_t protect_every;
    testing::Matcher<const std::string&> says;
  };
  for (const Case& each :
       {Case{Scheme::single, 1,
             testing::EndsWith("; a stays beside newer commits until the background work on them is done")},
        Case{Scheme::xor_, 1, a_or_b}, Case{Scheme::xor_, 0, a_or_b}}) {
    job.options.redundancy.scheme = each.scheme;
    job.options.redundancy.every = each.protect_every;
    OnEachRank met(4);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const bool on_demand = each.protect_every == 0;
      if (!on_demand) once(engine, scope.rank, [&] { gate.close(); });
      commit_step(engine, scope.rank, "a", 1);
      if (on_demand) {
        engine.wait("a", Level::protected_);
        engine.wait("a", Level::persistent);
        once(engine, scope.rank, [&] { gate.close(); });
      } else {
        once(engine, scope.rank, [&] { gate.await(4); });  // else b might supersede it before its work begins
      }
      commit_step(engine, scope.rank, "b", 2);
      once(engine, scope.rank, [&] {
        gate.await(4);
        Volume full;
        full.write_errno = ENOSPC;
        job.disk.set_volume("/nodes/node1", full);
      });
      met.put(scope.rank, failure_of([&] { engine.create("c"); }));
      once(engine, scope.rank, [&] {
        job.disk.set_volume("/nodes/node1", {});
        gate.open();
      });
    }));
    const auto failure = met.same();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_THAT(failure->message, each.says);
  }
}

TEST_F(Background, ManyCommitsNeedNoMoreFilesThanThePromisedOnes) {
  job.options.persistent.every = 3;
  for (const std::uint32_t pending : {1U, 2U, 4U}) {
    job.options.pipeline.max_pending = pending;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 30; ++step) {
        commit_step(engine, scope.rank, "step-" + std::to_string(step), step);
        EXPECT_LE(container_files(job.disk, scope.rank).size(), 1 + pending);
      }
    }));
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 30);
    EXPECT_EQ(opened.tag, "step-30");
    job.disk.remove_all("/nodes");
    job.disk.remove_all("/prefix");
    for (const char* directory : {"/nodes", "/prefix"}) job.disk.make_directories(directory, 0755);
  }
}

/// What failed in the background is told once, and made up for by the next commit, not by the next that is due.
TEST_F(Background, AFlushThatFailedIsRepeatedWithTheNextCommit) {
  job.options.persistent.every = 2;
  Volume full;
  full.write_errno = ENOSPC;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::protected_);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full); });
    commit_step(engine, scope.rank, "b", 2);
    const auto failure = failure_of([&] { engine.wait("b", Level::persistent); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_EQ(engine.level("b"), Level::protected_);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", {}); });
    commit_step(engine, scope.rank, "c", 3);
    engine.pin("c");  // which waits for it, and would throw
    EXPECT_EQ(engine.level("c"), Level::persistent);
    commit_step(engine, scope.rank, "d", 4);
    EXPECT_EQ(code_of([&] { engine.pin("d"); }), ErrorCode::not_found) << "the count began anew";
  }));
  EXPECT_TRUE(job.logged("b is not on the parallel filesystem"));
  EXPECT_EQ(tags(job), std::vector<Tag>{"c"});
}

TEST_F(Background, WaitSaysTheSameOnAllRanks) {
  OnEachRank not_there(4);
  OnEachRank impossible(4);
  job.options.redundancy.scheme = Scheme::single;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 5; ++step) {
      commit_step(engine, scope.rank, "step-" + std::to_string(step), step);
    }
    // Some ranks may have retired it, and others not yet.
    not_there.put(scope.rank, failure_of([&] { engine.wait("step-1", Level::local); }));
    impossible.put(scope.rank, failure_of([&] { engine.wait("step-5", Level::protected_); }));
    engine.wait("step-5", Level::persistent);
  }));
  EXPECT_EQ(not_there.same()->code, ErrorCode::not_found);
  EXPECT_EQ(impossible.same(), std::nullopt) << "persistent is more than protected";
}

/// What all ranks decide by what is known of commits, they do when nothing is under way.
TEST_F(Background, OpenAndPinAndFinalizeWaitForWhatIsUnderWay) {
  std::vector<std::thread> openers;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const auto commit_held_up = [&](const Tag& tag, int step) {
      once(engine, scope.rank, [&] { gate.close(); });
      commit_step(engine, scope.rank, tag, step);
      once(engine, scope.rank, [&] {
        gate.await(4);
        openers.emplace_back([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          gate.open();
        });
      });
    };
    commit_held_up("a", 1);
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.level("a"), Level::persistent);
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    commit_held_up("b", 2);
    engine.pin("b");
    EXPECT_EQ(engine.level("b"), Level::persistent);
    commit_held_up("c", 3);
    engine.finalize();
    EXPECT_EQ(engine.level("c"), Level::persistent);
  }));
  for (std::thread& opener : openers) opener.join();
  EXPECT_EQ(tags(job), (std::vector<Tag>{"c", "b", "a"}));
}

TEST_F(Background, WithoutThreadsBesideThatOfMessagesItIsInlineAndSaysSo) {
  job.thread_support = ThreadSupport::single;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(engine.level("a"), Level::persistent);
  }));
  EXPECT_TRUE(
      job.logged("inside the engine's calls; for background work, initialize MPI by MPI_Init_thread with "
                 "MPI_THREAD_FUNNELED or more"));
}

TEST_F(Background, WhereItIsNotAskedForByNameThatIsNoWarning) {
  job.options.pipeline.mode = PipelineMode::automatic;
  for (const ThreadSupport support : {ThreadSupport::single, ThreadSupport::multiple}) {
    std::atomic<int> infos = 0;
    std::atomic<int> warnings = 0;
    job.options.log.sink = [&](LogLevel level, std::string_view line) {
      if (line.find("inside the engine's calls") != std::string_view::npos)
        ++(level == LogLevel::info ? infos : warnings);
    };
    job.thread_support = support;
    gate.close();
    std::thread opener([&] {
      if (support == ThreadSupport::single) gate.open();
    });
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      if (support == ThreadSupport::single) return;
      EXPECT_LT(engine.level("a"), Level::persistent);
      once(engine, scope.rank, [&] { gate.open(); });
      engine.finalize();
    }));
    opener.join();
    EXPECT_EQ(infos, support == ThreadSupport::single ? 1 : 0);
    EXPECT_EQ(warnings, 0);
  }
}

/// The system gives one rank no thread.
TEST_F(Background, WithoutAThreadItIsInlineUnlessItWasAskedForByName) {
  job.thread_support = ThreadSupport::multiple;
  job.in_front = [](int rank, std::unique_ptr<Communicator> communicator) {
    if (rank == 2) communicator = std::make_unique<WithoutThreads>(std::move(communicator));
    return communicator;
  };
  expect_all_returned(job.start(
      [&](RankScope& scope) { EXPECT_EQ(code_of([&] { (void)scope.make_engine(); }), ErrorCode::no_space); }));
  job.options.pipeline.mode = PipelineMode::automatic;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(engine.level("a"), Level::persistent);
  }));
  EXPECT_TRUE(job.logged("inside the engine's calls: cannot create a thread"));
}

TEST_F(Background, WithoutThreadsInMessagesItIsInlineIfOnlyTheyMayBeUsed) {
  job.options.pipeline.messages = Messages::mpi;
  for (const ThreadSupport support : {ThreadSupport::funneled, ThreadSupport::serialized}) {
    job.thread_support = support;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_EQ(engine.level("a"), Level::persistent);
    }));
    EXPECT_TRUE(job.logged("MPI_THREAD_MULTIPLE, or set pipeline.messages to auto")) << static_cast<int>(support);
  }
}

TEST_F(Background, WhereOneThreadMayUseTheMessagesItSendsOverTcp) {
  for (const ThreadSupport support : {ThreadSupport::funneled, ThreadSupport::serialized, ThreadSupport::single}) {
    job.thread_support = support;
    if (support == ThreadSupport::single) job.options.pipeline.messages = Messages::tcp;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (const int step : {1, 2, 3}) {
        commit_step(engine, scope.rank, std::to_string(step), step);
        EXPECT_EQ(engine.counters().commits, static_cast<std::uint64_t>(step));
      }
      engine.wait("3", Level::persistent);
      EXPECT_EQ(engine.open(), "3");
      EXPECT_EQ(load_step(engine, scope.rank), 3);
      engine.close();
      engine.finalize();
    }));
    EXPECT_TRUE(job.logged("background work sends over TCP, on 127.0.0.0/8")) << static_cast<int>(support);
    EXPECT_FALSE(job.logged("inside the engine's calls"));
  }
}

TEST_F(Background, FinalizeFlushesTheNewest) {
  job.options.persistent.every = 10;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
  EXPECT_TRUE(job.logged("b of run 'test' is persistent"));
}

}  // namespace
}  // namespace kedge::faults::background_test
