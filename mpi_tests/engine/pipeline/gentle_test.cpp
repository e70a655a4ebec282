// Work in the background gives way to the application: it pauses when it is asked to and while all ranks are in create
// or commit, keeps to its cores, and sends no faster than its limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "harness/blocking_file_system.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/model_devices.hpp"
#include "harness/seconds_of.hpp"
#include "harness/several_starts.hpp"
#include "harness/watched_communicator.hpp"

namespace kedge::faults::gentle_test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;
using namespace std::chrono_literals;

TEST(Cores, AreReadFromText) {
  EXPECT_EQ(parse_cores(""), std::vector<unsigned>{});
  EXPECT_EQ(parse_cores("3"), std::vector<unsigned>{3});
  EXPECT_EQ(parse_cores("0-2,7"), (std::vector<unsigned>{0, 1, 2, 7}));
  for (const char* wrong : {",", "1,", ",1", "a", "1-", "-1", "2-1", "1 ,2", "0-99999", "4294967296", "1,,2", "0x1"}) {
    EXPECT_FALSE(parse_cores(wrong)) << wrong;
  }
}

class Gentle : public FlushFixture {
 protected:
  Gentle() {
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
    };
  }
  PersistentJob job{4};
};

TEST_F(Gentle, WhatIsPausedGoesOnWhenItIsAskedTo) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.pause();
    commit_step(engine, scope.rank, "a", 1);
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(engine.level("a"), Level::local);
    engine.resume();
    for (int turn = 0; turn < 10'000 && engine.level("a") != Level::persistent; ++turn) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(engine.level("a"), Level::persistent);
  }));
}

// Also where one rank alone has paused: the others' work waits for that one's.
TEST_F(Gentle, WhatIsPausedGoesOnWhenItIsWaitedFor) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (scope.rank == 2) engine.pause();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_LT(seconds_of([&] { engine.wait("a", Level::persistent); }), 30);
    if (scope.rank == 1) engine.pause();
    commit_step(engine, scope.rank, "b", 2);
    commit_step(engine, scope.rank, "c", 3);
    commit_step(engine, scope.rank, "d", 4);  // pipeline.max_pending is 2
    EXPECT_LT(seconds_of([&] { engine.finalize(); }), 30);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"d", "c", "b", "a"}));
}

// Nothing keeps the last checkpoint waiting, and it need not be taken earlier.
TEST_F(Gentle, WhatWorkStoodStillIsNoCostOfItsStages) {
  constexpr double kPaused_s = 3;
  job.options.exit.signals = {"SIGUSR1"};
  std::atomic<int> signal = 0;
  job.surroundings = [&](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.waits_for_worker = false;
    environment.clock = start::Environment::system().clock;
    environment.watch_signals = [&](const auto&, const auto&) { return [&] { return signal.load(); }; };
  };
  std::atomic<double> estimated_s = -1;
  job.options.log.sink = [&](LogLevel, std::string_view line) {
    static constexpr std::string_view kBefore = "(estimated ";
    const auto at = line.find(kBefore);
    if (at == std::string_view::npos) return;
    EXPECT_NE(line.find(" from recent ones"), std::string_view::npos) << line;
    const bool is_below_one = line.find(" s from recent ones") == std::string_view::npos;
    estimated_s = is_below_one ? 0 : std::stod(std::string(line.substr(at + kBefore.size())));
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.pause();
    commit_step(engine, scope.rank, "a", 1);
    std::this_thread::sleep_for(std::chrono::duration<double>(kPaused_s));
    engine.resume();
    engine.wait("a", Level::persistent);
    signal = SIGUSR1;
    EXPECT_TRUE(engine.need_checkpoint());
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  EXPECT_THAT(estimated_s, AllOf(Ge(0), Lt(kPaused_s / 2)));
}

TEST_F(Gentle, AnEngineMayBeDestroyedWhileItIsPaused) {
  EXPECT_LT(seconds_of([&] {
              expect_all_returned(job.start([&](RankScope& scope) {
                Engine engine = scope.make_engine();
                engine.pause();
                commit_step(engine, scope.rank, "a", 1);
              }));
            }),
            30);
}

/// Whether the flush of "a" got on while all ranks were in `call` of "b", whose messages take a moment on rank 0.
bool gets_on_during(PersistentJob& job, const std::function<void(Engine&)>& before,
                    const std::function<void(Engine&)>& call, const std::function<void(Engine&)>& after) {
  Gate gate;
  std::atomic<int> reductions = -1;  // of rank 0 in the call; -1: it is not in there
  std::function<void()> on_second;
  bool got_on = false;
  job.surroundings = [&](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.waits_for_worker = false;
    environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
  };
  job.in_front = [&](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
    if (rank != 0) return own;
    return std::make_unique<kedge::testing::WatchedCommunicator>(std::move(own), [&](Deadline) {
      if (reductions >= 0 && ++reductions == 2) on_second();  // after the one that all enter by
    });
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    gate.close();
    commit_step(engine, scope.rank, "a", 1);
    gate.await(4);
    before(engine);
    if (scope.rank == 0) {
      on_second = [&] {
        gate.open();
        std::this_thread::sleep_for(200ms);
        got_on = engine.level("a") == Level::persistent;
      };
      reductions = 0;
    }
    call(engine);
    if (scope.rank == 0) {
      EXPECT_GE(reductions, 2);
      reductions = -1;
    }
    after(engine);
    engine.finalize();
  }));
  return got_on;
}

// Then no rank waits for its own, and nobody is kept waiting for votes by work that another could do later.
TEST_F(Gentle, WorkStandsStillWhileAllRanksAreInCreateOrCommit) {
  const auto nothing = [](Engine&) {};
  const auto create = [](Engine& engine) { engine.create("b"); };
  const auto commit = [](Engine& engine) { engine.commit(); };
  job.options.pipeline.max_pending = 2;
  EXPECT_FALSE(gets_on_during(job, nothing, create, commit));
  EXPECT_FALSE(gets_on_during(job, create, commit, nothing));
}

// A GPU may have seconds of work to do before it comes to what is saved.
TEST_F(Gentle, WorkGoesOnWhileSaveWaitsForAGpu) {
  Gate gate;
  std::vector<std::shared_ptr<ModelDevices>> devices;
  for (int rank = 0; rank < 4; ++rank) devices.push_back(std::make_shared<ModelDevices>());
  job.surroundings = [&](int rank, engine::EngineEnvironment& environment) {
    environment.waits_for_worker = false;
    environment.devices = devices[static_cast<std::size_t>(rank)];
    environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *devices[static_cast<std::size_t>(scope.rank)];
    const ModelDevices::Array array(own, 0, 64);
    int stream = 0;
    Engine engine = scope.make_engine();
    gate.close();
    commit_step(engine, scope.rank, "a", 1);
    gate.await(4);
    engine.create("b");
    own.give({&stream}, [&] {
      gate.open();
      for (int turn = 0; turn < 10'000 && engine.level("a") != Level::persistent; ++turn) {
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_EQ(engine.level("a"), Level::persistent);
    });
    Region region{array.address(), DataType::uint8, Shape{64}};
    region.stream = DeviceStream{&stream};
    EXPECT_TRUE(engine.save("field", region));
    engine.commit();
    engine.finalize();
  }));
}

/// The cores on which the thread runs that says what became of a commit.
std::vector<unsigned> cores_of_worker(PersistentJob& job, const std::string& cores, bool& warned) {
  std::atomic<bool> said = false;
  std::atomic<bool> refused = false;
  cpu_set_t set;
  CPU_ZERO(&set);
  job.options.pipeline.cores = cores;
  job.options.log.sink = [&](LogLevel, std::string_view line) {
    if (line.find("pipeline.cores") != std::string_view::npos) refused = true;
    if (line.find(", protected (") == std::string_view::npos) return;
    ::sched_getaffinity(0, sizeof set, &set);
    said = true;
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    engine.finalize();
  }));
  EXPECT_TRUE(said);
  warned = refused;
  std::vector<unsigned> found;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) found.push_back(core);
  }
  return found;
}

TEST_F(Gentle, WorkKeepsToItsCores) {
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  unsigned last = 0;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) last = CPU_ISSET(core, &own) ? core : last;
  bool warned = false;
  EXPECT_EQ(cores_of_worker(job, std::to_string(last), warned), std::vector<unsigned>{last});
  EXPECT_FALSE(warned);
}

TEST_F(Gentle, CoresThatAreNotThereAreToldAndCostNothing) {
  bool warned = false;
  EXPECT_GE(cores_of_worker(job, "1023", warned).size(), 1U);
  EXPECT_TRUE(warned);
}

/// Two ranks on a node each, which protect 4 MiB of each at most so fast.
struct LimitedJob : SimulatedJob {
  explicit LimitedJob(std::uint64_t limit) : SimulatedJob(2) {
    options.pipeline.mode = PipelineMode::background;
    options.persistent.every = 0;
    options.redundancy.bandwidth_limit = limit;
    ranks_per_node = 1;
  }
  /// Each rank commits, and does `then`.
  void run(const std::function<void(Engine&)>& then) {
    expect_all_returned(start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const std::vector<std::byte> state(std::size_t{4} << 20U, std::byte{7});
      engine.create("a");
      engine.save("state", {state.data(), DataType::uint8, Shape{state.size()}});
      engine.commit();
      then(engine);
    }));
  }
};

/// That pass on rank 0 until all is protected.
double seconds_of_a_protection(std::uint64_t limit) {
  LimitedJob job(limit);
  const auto clock = std::make_shared<FakeClock>();  // of rank 0
  job.surroundings = [&](int rank, engine::EngineEnvironment& environment) {
    environment.clock = rank == 0 ? clock : std::make_shared<FakeClock>();
  };
  job.run([](Engine& engine) { engine.wait("a", Level::protected_); });
  return clock->seconds();
}

TEST(GentleProtection, SendsNoFasterThanTheLimit) {
  EXPECT_LT(seconds_of_a_protection(0), 1);
  EXPECT_NEAR(seconds_of_a_protection(std::uint64_t{1} << 20U), 4, 0.6);
}

// Somebody waits for the end: of a limit that would take a minute nothing is left.
TEST(GentleProtection, TheEndDoesNotWaitForTheLimit) {
  LimitedJob job(std::uint64_t{1} << 16U);
  job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.clock = system_clock();
    environment.waits_for_worker = false;
  };
  const double took_s = seconds_of([&] {
    job.run([](Engine& engine) {
      std::this_thread::sleep_for(500ms);
      EXPECT_EQ(engine.level("a"), Level::local);
    });
  });
  EXPECT_LT(took_s, 5);
}

}  // namespace
}  // namespace kedge::faults::gentle_test
