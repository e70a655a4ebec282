// store.on_exit = remove: what was removed on purpose is not missed by the next start, and nothing else is forgotten.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <iostream>
#include <memory>
#include <utility>

#include "base/text.hpp"
#include "fs/system_error.hpp"
#include "harness/engine_checks.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::deliberate_end_test {
namespace {

const std::string kNote = "/prefix/.kedge/test/first-commit";

bool exists(const SimulatedJob& job, const std::string& path) { return job.disk.snapshot().contains(path); }

std::size_t containers(const SimulatedJob& job) {
  std::size_t count = 0;
  for (int rank = 0; rank < job.ranks; ++rank) count += container_files(job.disk, rank).size();
  return count;
}

/// A start that opens what there is, commits `then` and ends.
std::vector<testing::RankOutcome> end(SimulatedJob& job, const Steps& then = {{"last", 9}}) {
  return job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (engine.open()) engine.close();
    for (const auto& [tag, step] : then) commit_step(engine, scope.rank, tag, step);
    engine.finalize();
  });
}

struct RemovingJob : SimulatedJob {
  explicit RemovingJob(int ranks_, DiskOptions disk_options = memory_disk())
      : SimulatedJob(ranks_, std::move(disk_options)) {
    options.store.on_exit = OnExit::remove;
  }
};

TEST(DeliberateEnd, AfterARemovalThatWasAskedForTheNextStartBeginsFromZero) {
  for (const int ranks : {1, 2, 4, 8}) {
    RemovingJob job(ranks);
    job.options.redundancy.every = 0;  // a partner's copy would do
    for (int round = 0; round < 2; ++round) {
      expect_all_returned(end(job));
      EXPECT_EQ(containers(job), 0U);
      EXPECT_FALSE(exists(job, kNote));
      for (int node = 0; node < (ranks + 1) / 2; ++node) {
        EXPECT_FALSE(exists(job, run_directory_of(job.disk, compose("node{}", node)) + "/committed"));
      }
      const Opened opened = reopen(job);
      EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
      EXPECT_EQ(opened.tag, std::nullopt);
    }
    // The run goes on under its identity, and what it commits now counts again.
    commit_steps(job, {{"new", 5}});
    EXPECT_EQ(reopen(job).step, 5);
    for (int rank = 0; rank < ranks; ++rank) job.disk.remove_all(container_of(job.disk, rank, "new"));
    const Failure failure = reopen(job).failure.value_or(Failure{});
    EXPECT_EQ(failure.code, ErrorCode::unrecoverable) << to_string(failure);
  }
}

TEST(DeliberateEnd, WhatIsKeptIsRemembered) {
  SimulatedJob job(2);
  expect_all_returned(end(job));
  EXPECT_TRUE(exists(job, kNote));
  EXPECT_EQ(reopen(job).step, 9);
}

/// The log tells what a user plans a node's memory with, of all nodes.
TEST(DeliberateEnd, TheLogTellsHowManyCheckpointsTheStoresAmountTo) {
  struct Case {
    Scheme scheme;
    const char* kept;
    const char* running;  // the next container is made ready
  };
  for (const Case& one : {Case{Scheme::single, "1.0", "2.0"}, Case{Scheme::partner, "2.1", "3.1"}}) {
    SimulatedJob job(4);
    job.options.redundancy.scheme = one.scheme;
    expect_all_returned(end(job));
    EXPECT_TRUE(job.logged(" of memory on 2 nodes kept for the next start, ")) << job.log().back();
    EXPECT_TRUE(
        job.logged(compose(", {} times the newest checkpoint ({} times while the job ran); to free it, run on "
                           "each node: kedge drop /nodes/",
                           one.kept, one.running)))
        << job.log().back();
  }
}

/// Every operation of the last start is one in which one rank dies, or all; returns how many there were.
std::uint64_t die_everywhere(RemovingJob& job, const Steps& then) {
  const auto before = job.disk.snapshot();
  expect_all_returned(end(job, then));
  const auto operations = job.operations;
  std::uint64_t points = 0;
  for (int victim = 0; victim < job.ranks; ++victim) {
    for (std::uint64_t n = 1; n <= operations[static_cast<std::size_t>(victim)]; ++n, ++points) {
      job.disk.restore(before);
      job.disk.stop_world_after(victim, n, n);
      end(job, then);
      const auto left = containers(job);
      const Opened opened = reopen(job);
      if (opened.failure) {
        EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable) << to_string(*opened.failure);
      } else if (!opened.tag) {
        EXPECT_EQ(left, 0U) << "rank " << victim << " died in operation " << n;
      } else {
        EXPECT_TRUE(opened.step == 1 || opened.step == 9) << opened.step;
      }
    }
  }
  return points;
}

TEST(DeliberateEnd, ADeathAnywhereInItNeverLetsAStartBeginFromZeroBesideContainers) {
  std::uint64_t points = 0;
  for (const bool durable : {false, true}) {
    for (const bool together : {false, true}) {
      // Pieces of a first commit tell of none: there the note alone says that it existed.
      for (const Steps& then : {Steps{}, Steps{{"last", 9}}}) {
        RemovingJob job(3, durable ? SimulatedJob::block_disk() : SimulatedJob::memory_disk());
        job.options.store.durable = durable;
        commit_steps(job, {{"a", 1}});
        job.kill_all_ranks = together;
        points += die_everywhere(job, then);
      }
    }
  }
  std::cout << points << " deaths\n";
}

TEST(DeliberateEnd, ARemovalThatFailsOnOneRankFailsOnAllAndForgetsNothing) {
  for (const int victim : {0, 3}) {
    RemovingJob job(4);
    commit_steps(job, {{"a", 1}});
    const auto failure = expect_all_failed(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      engine.close();
      if (scope.rank == victim) job.disk.fail_sometimes(scope.rank, 1, EIO, 1);
      engine.finalize();
    }),
                                           ErrorCode::io);
    EXPECT_EQ(failure.rank, victim);
    EXPECT_TRUE(exists(job, kNote));
    EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::unrecoverable);
  }
}

/// Whatever of the end fails on one rank: all ranks hear of it, and what was committed is there.
TEST(DeliberateEnd, AnEndThatFailsOnOneRankFailsOnAll) {
  SimulatedJob job(4);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const auto before = job.disk.snapshot();
  int failed = 0;
  bool reached = true;
  for (std::uint64_t n = 1; reached; ++n) {
    SCOPED_TRACE(compose("operation {} of rank 3 fails", n));
    job.disk.restore(before);
    OnEachRank outcomes(4);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      engine.close();
      const std::uint64_t begin = job.disk.operations(3);
      if (scope.rank == 3) job.disk.fail(3, begin + n, EIO);
      outcomes.put(scope.rank, failure_of([&] { engine.finalize(); }));
      if (scope.rank == 3) reached = job.disk.operations(3) >= begin + n;
    }));
    if (outcomes.same()) ++failed;
    EXPECT_EQ(reopen(job).step, 2);
  }
  EXPECT_GT(failed, 0);
}

/// Cannot list directories once it was told so, as where too many files are open.
class Unlistable final : public ForwardingFileSystem {
 public:
  Unlistable(std::shared_ptr<fs::FileSystem> inner, std::shared_ptr<std::atomic<bool>> now)
      : ForwardingFileSystem(std::move(inner)), now_(std::move(now)) {}
  std::vector<std::string> list(const std::string& path) override {
    if (*now_) fs::throw_system_error("list the directory", path, EMFILE);
    return inner().list(path);
  }

 private:
  std::shared_ptr<std::atomic<bool>> now_;
};

/// A job that is done has not failed because something could not be tidied up: the next start does it.
TEST(DeliberateEnd, WhatCannotBeTidiedUpIsAWarning) {
  SimulatedJob job(4);
  const auto now = std::make_shared<std::atomic<bool>>(false);
  job.surroundings = [now](int rank, start::Environment& environment) {
    if (rank == 1) environment.file_system = std::make_shared<Unlistable>(environment.file_system, now);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    if (scope.rank == 1) *now = true;
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("the node-local store could not be tidied up"));
  *now = false;
  EXPECT_EQ(reopen(job).step, 1);
}

TEST(DeliberateEnd, AnotherStartThatCameInBetweenKeepsItsRecord) {
  RemovingJob job(2);
  commit_steps(job, {{"a", 1}});
  expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open();
    engine.close();
    if (scope.rank == 0) job.disk.write_all("/prefix/.kedge/test/begun-99", {});
    engine.finalize();
  }),
                    ErrorCode::busy);
  EXPECT_TRUE(exists(job, kNote));
}

TEST(DeliberateEnd, WhatWasLostBeforeIsNotForgotten) {
  RemovingJob job(2);
  commit_steps(job, {{"a", 1}});
  const std::string lost = container_of(job.disk, 1, "a");
  const auto before = job.disk.snapshot();
  job.disk.remove_all(lost);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    try {
      (void)engine.open();
      ADD_FAILURE() << "rank 1 has no container";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unrecoverable);
    }
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("store.on_exit = remove was not carried out"));
  EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::unrecoverable);
  const auto without = job.disk.snapshot();
  job.disk.write_all(lost, before.at(lost).bytes);
  EXPECT_EQ(reopen(job).step, 1) << "what was lost came back, and the rest was still there";
  job.disk.restore(without);
  // A new beginning that the application chose, and its end.
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  EXPECT_FALSE(reopen(job).failure);
}

TEST(DeliberateEnd, ContainersOfRanksThatTheJobDoesNotHaveAreRemovedToo) {
  RemovingJob job(4);
  commit_steps(job, {{"a", 1}});
  job.ranks = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
  }));
  EXPECT_FALSE(exists(job, kNote));  // ranks 2 and 3 lie on a node that this job does not have
  job.ranks = 3;
  commit_steps(job, {{"c", 3}});
  job.ranks = 1;
  const std::string planted = run_directory_of(job.disk, "node0") + "/rank-5.0.h5";
  job.disk.write_all(planted, job.disk.read_all(container_of(job.disk, 1, "c")));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "d", 4);
    engine.finalize();
  }));
  EXPECT_FALSE(exists(job, planted));
  EXPECT_FALSE(exists(job, kNote));
}

}  // namespace
}  // namespace kedge::faults::deliberate_end_test
