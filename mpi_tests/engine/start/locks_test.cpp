// One start of a run at a time: who waits for whom, who wins, who is named, and that no container is touched before;
// start = fresh waits too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "harness/several_starts.hpp"
#include "harness/watched_communicator.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::faults::locks_test {
namespace {

constexpr auto kAnyTime = std::chrono::seconds(60);
constexpr double kForever_s = 1e9;  // of virtual time
constexpr int kOthers = 50;         // views of processes that are not the first start's

/// Another start of the same run, beside the one that runs.
std::vector<testing::RankOutcome> start_beside(SimulatedJob& job, const Options& options, int first_view,
                                               const std::function<void(RankScope&)>& body) {
  testing::InProcessWorld world(job.ranks);
  const auto clock = std::make_shared<FakeClock>();
  return world.run_connected([&](Communicator& communicator) {
    const int rank = communicator.rank();
    RankScope scope{rank, job.ranks, communicator, [&, rank] {
                      engine::EngineEnvironment environment;
                      environment.file_system = job.disk.view(first_view + rank);
                      environment.clock = clock;
                      environment.ranks_per_node = job.ranks_per_node;
                      return engine::EngineEnvironment::make_engine(world.communicator(rank), options, environment);
                    }};
    body(scope);
  });
}

void only_start(RankScope& scope) { const Engine engine = scope.make_engine(); }

bool exists(const SimulatedJob& job, const std::string& path) { return job.disk.snapshot().contains(path); }

// A start may take longer than comm.timeout_s only where it waits for locks.
TEST(Locks, ARankThatWaitsForALockIsWaitedForAsLong) {
  SimulatedJob job(2);
  job.options.comm.timeout_s = 2.9e8;  // more than 3e8 s is no deadline at all: that is seen here
  for (const double lock_timeout_s : {1.0, 2e7}) {
    job.options.store.lock_timeout_s = lock_timeout_s;
    std::atomic<int> unlimited = 0;
    job.in_front = [&](int /*rank*/, std::unique_ptr<Communicator> own) {
      return std::make_unique<testing::WatchedCommunicator>(std::move(own), [&](Deadline deadline) {
        if (!deadline.finite()) ++unlimited;
      });
    };
    expect_all_returned(job.start(only_start));
    EXPECT_EQ(unlimited, lock_timeout_s > 1 ? job.ranks : 0);
  }
}

TEST(Locks, ASecondStartIsBusyNamesTheFirstAndHarmsNothing) {
  for (const int ranks : {1, 4}) {
    SimulatedJob job(ranks);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      scope.communicator.barrier(Deadline::after(kAnyTime));
      if (scope.rank == 0) {
        const auto failure = expect_all_failed(start_beside(job, job.options, kOthers, only_start), ErrorCode::busy);
        EXPECT_TRUE(says(failure.message, {"incarnation 1, rank 0", "store.lock_timeout_s"})) << failure.message;
        EXPECT_FALSE(failure.path.empty());
        EXPECT_TRUE(job.logged("waiting up to ")) << "it does not look like a hang";
        EXPECT_FALSE(exists(job, "/prefix/.kedge/test/incarnation-2"));
        EXPECT_FALSE(exists(job, "/prefix/.kedge/test/begun-2"));
      }
      scope.communicator.barrier(Deadline::after(kAnyTime));
      commit_step(engine, scope.rank, "b", 2);
      commit_step(engine, scope.rank, "c", 3);
      EXPECT_EQ(engine.open(Before{"c"}, Newer::discard), "b");
      engine.close();
    }));
    EXPECT_EQ(reopen(job).step, 2);
  }
}

// Its own store is a new one: what it waits for is that of the run that it leaves behind.
TEST(Locks, AFreshStartBesideOneThatWorksIsBusyAndHarmsNothing) {
  for (const int ranks : {1, 4}) {
    SimulatedJob job(ranks);
    job.options.persistent.every = 1;
    Options fresh = job.options;
    fresh.start = StartMode::fresh;
    commit_steps(job, {{"z", 9}});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      for (int attempt = 0; attempt < 2; ++attempt) {
        scope.communicator.barrier(Deadline::after(kAnyTime));
        if (scope.rank == 0) {
          const auto failure = expect_all_failed(start_beside(job, fresh, kOthers, only_start), ErrorCode::busy);
          EXPECT_TRUE(says(failure.message, {"incarnation 2, rank 0", "store.lock_timeout_s"})) << failure.message;
          EXPECT_TRUE(job.logged("waiting up to "));
        }
        scope.communicator.barrier(Deadline::after(kAnyTime));
        commit_step(engine, scope.rank, "b", 2 + attempt);
        engine.wait("b", Level::persistent);
      }
      engine.finalize();
    }));
    EXPECT_EQ(reopen(job).step, 3);
    job.options.start = StartMode::fresh;
    EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 4}}).tag, std::nullopt) << "nobody works there any more";
    job.options.start = StartMode::continue_;
    EXPECT_EQ(reopen(job).step, 4);
  }
}

TEST(Locks, AFreshStartWaitsUntilTheOneBeforeHasEnded) {
  SimulatedJob job(2);
  Options fresh = job.options;
  fresh.start = StartMode::fresh;
  fresh.store.lock_timeout_s = 1e6;
  std::optional<std::thread> beside;
  std::atomic<bool> has_begun = false;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    scope.communicator.barrier(Deadline::after(kAnyTime));
    if (scope.rank == 0) {
      beside.emplace([&] {
        expect_all_returned(start_beside(job, fresh, kOthers, [&](RankScope& mine) {
          Engine anew = mine.make_engine();
          has_begun = true;
          EXPECT_EQ(anew.open(), std::nullopt);
          commit_step(anew, mine.rank, "c", 5);
        }));
      });
    }
    if (scope.rank == 0) {
      for (int turn = 0; turn < 5000 && !job.logged("waiting up to ") && !has_begun; ++turn) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    scope.communicator.barrier(Deadline::after(kAnyTime));
    EXPECT_FALSE(has_begun);
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  beside->join();
  EXPECT_EQ(reopen(job).step, 5);
}

TEST(Locks, ASecondEngineOfTheRunInTheSameProcessesIsBusyAndHarmsNothing) {
  SimulatedJob job(2);
  expect_all_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    try {
      const Engine second = scope.make_engine();
      ADD_FAILURE() << "two engines share one store";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::busy) << error.what();
    }
    commit_step(engine, scope.rank, "b", 2);
  }));
  EXPECT_EQ(reopen(job).step, 2);
}

TEST(Locks, AFinalizedEngineHoldsNothingThoughItLives) {
  SimulatedJob job(2);
  job.options.open.chained = true;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine first = scope.make_engine();
    commit_step(first, scope.rank, "a", 1);
    first.finalize();
    Engine second = scope.make_engine();
    EXPECT_EQ(second.open(), "a");
  }));
}

TEST(Locks, AStartThatWaitsOrDiedWaitingSupersedesNobody) {
  SimulatedJob job(2);
  job.disk.make_directories("/prefix", 0755);
  persist::RunStart first({job.disk.view(0), "/prefix", "test"});
  EXPECT_EQ(first.take_incarnation(), 1U);
  first.mark_begun({});
  {
    persist::RunStart second({job.disk.view(1), "/prefix", "test"});
    EXPECT_EQ(second.take_incarnation(), 2U);
    EXPECT_TRUE(first.is_newest());
  }
  persist::RunStart third({job.disk.view(1), "/prefix", "test"});
  EXPECT_EQ(third.take_incarnation(), 3U);
  third.mark_begun({});
  EXPECT_FALSE(first.is_newest());
  EXPECT_TRUE(third.is_newest());
  third.withdraw();
  EXPECT_TRUE(first.is_newest());
}

TEST(Locks, AStartThatWaitsGetsTheStoreWhenTheFirstEndsAndSeesItsNewestCommit) {
  SimulatedJob job(2);
  Options patient = job.options;
  patient.store.lock_timeout_s = kForever_s;
  std::thread second;
  int seen = -1;
  expect_all_returned(job.start([&](RankScope& scope) {
    {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      if (scope.rank == 0) {
        second = std::thread([&] {
          expect_all_returned(start_beside(job, patient, kOthers, [&](RankScope& mine) {
            Engine engine_2 = mine.make_engine();
            EXPECT_TRUE(engine_2.open());
            const int step = load_step(engine_2, mine.rank);
            engine_2.close();
            if (mine.rank == 0) seen = step;
          }));
        });
      }
      for (int step = 2; step < 30; ++step) commit_step(engine, scope.rank, "a", step);
    }
    if (scope.rank == 0) second.join();
  }));
  EXPECT_EQ(seen, 29);
}

TEST(Locks, AStoppedSurvivorIsWaitedForAndNamed) {
  SimulatedJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  const auto history = [](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.close();
    commit_step(engine, scope.rank, "b", 2);
  };
  expect_all_returned(job.start(history));
  const auto all = job.events[1];
  for (std::uint64_t back = 1; back <= 12; ++back) {
    job.disk.restore(before);
    job.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, all - back, testing::StopKind::stop); };
    bool asked = false;
    job.start([&](RankScope& scope) {
      try {
        history(scope);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
      }
      if (scope.rank != 0) return;
      asked = true;
      const auto failure = expect_all_failed(start_beside(job, job.options, kOthers, only_start), ErrorCode::busy);
      EXPECT_TRUE(says(failure.message, {"incarnation 2, rank 1"})) << failure.message;
    });
    EXPECT_TRUE(asked);
    const Opened opened = reopen(job);
    EXPECT_TRUE(opened.tag == "a" || opened.tag == "b") << "stopped " << back << " events before the end";
  }
}

TEST(Locks, ADeadProcessHoldsNothing) {
  SimulatedJob job(2);
  commit_steps(job, {{"a", 1}});
  job.disk.stop_world_after(1, 12, 3);
  int seen = -1;
  job.start([&](RankScope& scope) {
    try {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "b", 2);
      ADD_FAILURE() << "rank 1 was to die";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
    }
    expect_all_returned(start_beside(job, job.options, kOthers, [&](RankScope& mine) {
      Engine engine = mine.make_engine();
      EXPECT_TRUE(engine.open());
      const int step = load_step(engine, mine.rank);
      engine.close();
      if (mine.rank == 0) seen = step;
    }));
  });
  EXPECT_EQ(seen, 1);
}

TEST(Locks, OfTwoSimultaneousStartsAtMostOneIsAliveAtATime) {
  std::set<int> winners;
  for (int round = 0; round < 40; ++round) {
    SimulatedJob job(2);
    commit_steps(job, {{"a", 1}});
    std::array<std::atomic<int>, 2> alive{};
    std::atomic<int> newest{1};
    const auto contender = [&](int number) {
      const auto outcomes = start_beside(job, job.options, kOthers * number, [&](RankScope& scope) {
        Engine engine = scope.make_engine();
        const auto rank = static_cast<std::size_t>(scope.rank);
        EXPECT_EQ(++alive[rank], 1) << "two engines on one rank's store";
        EXPECT_TRUE(engine.open());
        EXPECT_EQ(load_step(engine, scope.rank), newest.load());
        engine.close();
        commit_step(engine, scope.rank, "a", 10 * number);
        newest = 10 * number;
        scope.communicator.barrier(Deadline::after(kAnyTime));
        --alive[rank];
        scope.communicator.barrier(Deadline::after(kAnyTime));
      });
      if (outcomes[0].returned()) {
        expect_all_returned(outcomes);
        winners.insert(number);
      } else {
        expect_all_failed(outcomes, ErrorCode::busy);
      }
    };
    std::thread other([&] { contender(2); });
    std::thread one([&] { contender(1); });
    one.join();
    other.join();
    job.disk.restart();
    EXPECT_EQ(reopen(job).step, newest.load());
    EXPECT_LE(container_files(job.disk, 0).size(), 2U);
  }
  EXPECT_FALSE(winners.empty());
}

TEST(Locks, ARunWhoseRecordWasLostIsStillGuarded) {
  SimulatedJob job(2);
  expect_all_returned(job.start([&](RankScope& scope) { only_start(scope); }));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    scope.communicator.barrier(Deadline::after(kAnyTime));
    if (scope.rank == 0) {
      job.disk.remove_all("/prefix/.kedge");
      expect_all_failed(start_beside(job, job.options, kOthers, only_start), ErrorCode::mismatch);
      Options adopting = job.options;
      adopting.start = StartMode::adopt;
      const auto failure = expect_all_failed(start_beside(job, adopting, kOthers, only_start), ErrorCode::busy);
      EXPECT_TRUE(says(failure.message, {"incarnation 2, rank 0"})) << failure.message;
    }
    scope.communicator.barrier(Deadline::after(kAnyTime));
    commit_step(engine, scope.rank, "b", 2);
  }));
  EXPECT_EQ(reopen(job).step, 2);
}

}  // namespace
}  // namespace kedge::faults::locks_test
