// Whatever the application does, and wherever a rank dies, while the worker does what an open left to it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/deferred_work_fixture.hpp"

namespace kedge::faults::upkeep_ends_test {
namespace {

using format::SetFileKind;

/// "a" is committed and protected, and a byte of rank 1's parity flipped.
class UpkeepEnds : public DeferredWorkFixture {
 protected:
  UpkeepEnds() { commit_and_flip(job); }

  static void commit_and_flip(SimulatedJob& one) {
    commit_protected(one, {{"a", 1}});
    one.disk.flip_bit(set_file_of(one.disk, SetFileKind::parity, 1, "a"), 4096 + 1000);
  }
  /// Each piece of parity takes a while to read.
  void read_slowly() {
    holds.reading = [](const std::string& path) {
      if (is_parity(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
  }
  /// It is right, and survives each node, once a start has finished its upkeep.
  void expect_whole(SimulatedJob& one, int step) {
    holds = {};
    expect_all_returned(one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_TRUE(engine.open());
      EXPECT_EQ(load_step(engine, scope.rank), step);
      engine.close();
      engine.finalize();
    }));
    const auto before = one.disk.snapshot();
    for (int node = 0; node < one.ranks; ++node) {
      one.disk.restore(before);
      one.disk.remove_all(store_of(node));
      EXPECT_EQ(reopen(one).step, step) << "without node " << node;
    }
  }

  static void commit_after_close(Engine& engine, int rank) {
    engine.close();
    commit_step(engine, rank, "b", 2);
    engine.finalize();
  }
};

TEST_F(UpkeepEnds, OpenAgainAndAgain) {
  read_slowly();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int turn = 0; turn < 5; ++turn) {
      EXPECT_EQ(engine.open(), "a");
      EXPECT_EQ(turn % 2 == 0 ? load_step(engine, scope.rank) : 1, 1);
      engine.close();
    }
    EXPECT_EQ(engine.open(Tag("none")), std::nullopt);
    engine.finalize();
  }));
  expect_whole(job, 1);
}

TEST_F(UpkeepEnds, CommitsAtOnceAndOneThatIsAbandoned) {
  read_slowly();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.close();
    engine.create("dropped");
    engine.abandon();
    for (int step = 2; step <= 6; ++step) {
      commit_step(engine, scope.rank, "step-" + std::to_string(step), step);
      EXPECT_LE(container_files(job.disk, scope.rank).size(), 3U) << "store.keep and pipeline.max_pending";
    }
    engine.finalize();
  }));
  expect_whole(job, 6);
}

TEST_F(UpkeepEnds, ByFinalizeAtOnceWhichFinishesIt) {
  read_slowly();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("a is protected again"));
  expect_whole(job, 1);
}

TEST_F(UpkeepEnds, ByDestroyingTheEngine) {
  for (const bool is_closed : {false, true}) {
    read_slowly();
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      if (is_closed) engine.close();
    }));
  }
  expect_whole(job, 1);
}

TEST_F(UpkeepEnds, ByAnException) {
  read_slowly();
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    if (scope.rank == 2) throw std::runtime_error("the application's own");
    engine.close();
    commit_step(engine, scope.rank, "b", 2);
  });
  EXPECT_TRUE(outcomes[2].exception);
  expect_whole(job, 1);
}

/// Whatever load finds is told by close, and the next checkpoint looks at the stores: not while somebody works there.
TEST_F(UpkeepEnds, WhileLoadFindsDamage) {
  for (const bool opens_again : {false, true}) {
    SimulatedJob one(4);
    one.options = job.options;
    one.ranks_per_node = job.ranks_per_node;
    one.options.store.keep = 2;
    one.surroundings = job.surroundings;
    commit_and_flip(one);
    expect_all_returned(one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      commit_after_close(engine, scope.rank);
    }));
    const std::string harmed = faults::container_of(one.disk, 2, "b");
    one.disk.flip_bit_when_verified(harmed, inside_large(one.disk, harmed));
    expect_all_returned(one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      find_damaged(engine, scope.rank, latest, "b");
      if (opens_again) {
        EXPECT_EQ(engine.open(), "b") << "which can be rebuilt";
        EXPECT_EQ(load_step(engine, scope.rank), 2);
        engine.close();
      }
      commit_step(engine, scope.rank, "c", 3);
      engine.finalize();
    }));
    expect_whole(one, 3);
  }
}

/// At any message: the others hear of it, and the next start has what there was.
TEST_F(UpkeepEnds, ByTheDeathOfARankAtAnyMessage) {
  const auto flipped = job.disk.snapshot();
  std::uint64_t total = 0;
  for (std::uint64_t event = 0;; event += total / 40 + 1) {
    SCOPED_TRACE(event);
    SimulatedJob one(4, SimulatedJob::block_disk());
    one.options = job.options;
    one.ranks_per_node = job.ranks_per_node;
    one.options.log.sink = [](LogLevel, std::string_view) {};
    one.surroundings = job.surroundings;
    one.disk.restore(flipped);
    if (total != 0) one.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, event, testing::StopKind::die); };
    int returned = 1;
    const auto outcomes = one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      EXPECT_EQ(load_step(engine, scope.rank), 1);
      engine.close();
      commit_step(engine, scope.rank, "b", 2);
      if (scope.rank == 0) returned = 2;
      engine.finalize();
    });
    if (total == 0) {
      expect_all_returned(outcomes);
      total = one.events[1];
      ASSERT_GT(total, 200U);
      event = 0;
      continue;
    }
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_TRUE(!outcomes[rank].exception || outcomes[rank].failure) << rank;
    }
    const Opened opened = reopen(one);
    EXPECT_GE(opened.tag ? opened.step : 0, returned) << faults::text_of(opened.failure);
    if (event + total / 40 + 1 >= total || HasFailure()) break;
  }
}

/// The stores keep what they had, and a start that takes over goes on from it.
TEST_F(UpkeepEnds, AtAnyOperationOfAStore) {
  const auto flipped = job.disk.snapshot();
  std::uint64_t total = 0;
  for (std::uint64_t operation = 0;; operation += total / 40 + 1) {
    SCOPED_TRACE(operation);
    SimulatedJob one(4, SimulatedJob::block_disk());
    one.options = job.options;
    one.ranks_per_node = job.ranks_per_node;
    one.options.log.sink = [](LogLevel, std::string_view) {};
    one.surroundings = job.surroundings;
    one.disk.restore(flipped);
    one.kill_all_ranks = true;
    if (total != 0) one.disk.stop_world_after(1, operation, operation);
    (void)one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      engine.close();
      engine.finalize();
    });
    if (total == 0) {
      total = one.operations[1];
      ASSERT_GT(total, 10U);
      continue;
    }
    expect_whole(one, 1);
    if (operation + total / 40 + 1 >= total || HasFailure()) break;
  }
}

}  // namespace
}  // namespace kedge::faults::upkeep_ends_test
