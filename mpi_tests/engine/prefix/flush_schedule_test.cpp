// When commits go to the prefix: every Nth, on demand, in finalize, after a flush that failed and after an open of one
// that is not there, after their protection and never twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "harness/watched_communicator.hpp"

namespace kedge::faults::flush_schedule_test {
namespace {

class FlushSchedule : public FlushFixture {};

TEST_F(FlushSchedule, EveryNthAndOnDemand) {
  PersistentJob job(3);
  job.options.persistent.every = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
  job.options.persistent.every = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open();
    engine.close();
    EXPECT_EQ(engine.level("c"), Level::protected_);
    engine.wait("c", Level::persistent);
    EXPECT_EQ(engine.level("c"), Level::persistent);
    engine.wait("c", Level::persistent);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"c", "b"}));
}

TEST_F(FlushSchedule, AfterAnOpenOfACommitThatIsNotPersistentTheNextIsFlushed) {
  PersistentJob job(2);
  job.options.persistent.every = 3;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  EXPECT_EQ(tags(job), std::vector<Tag>{});
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}, {"d", 4}}).tag, "b");
  EXPECT_EQ(tags(job), std::vector<Tag>{"c"});
  // After one that is, the count begins anew.
  lose_stores(job, {0, 1});
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"e", 5}, {"f", 6}}).tag, "c");
  EXPECT_EQ(tags(job), std::vector<Tag>{"c"});
}

/// Where not every commit is flushed, one that could not be is made up for by the next, not by the next that is due.
TEST_F(FlushSchedule, AFlushThatFailedIsRepeatedWithTheNextCommit) {
  PersistentJob job(3);
  job.options.persistent.every = 2;
  Volume full;
  full.write_errno = ENOSPC;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "c", 3);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", full);
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "d", 4);
    EXPECT_EQ(engine.level("d"), Level::protected_);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", {});
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "e", 5);
    EXPECT_EQ(engine.level("e"), Level::persistent);
    commit_step(engine, scope.rank, "f", 6);
    EXPECT_EQ(engine.level("f"), Level::protected_) << "the count began anew";
  }));
}

TEST_F(FlushSchedule, FinalizeFlushesTheNewestWhereCommitsAreFlushedAtAll) {
  struct Case {
    std::uint32_t every;
    OnExit on_exit;
    std::vector<Tag> tags;
  };
  for (const Case& one : {Case{3, OnExit::keep, {"b"}}, Case{0, OnExit::keep, {}}, Case{3, OnExit::remove, {}}}) {
    PersistentJob job(2);
    job.options.persistent.every = one.every;
    job.options.store.on_exit = one.on_exit;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      commit_step(engine, scope.rank, "b", 2);
      engine.finalize();
    }));
    EXPECT_EQ(tags(job), one.tags);
    EXPECT_EQ(job.logged("b of run 'test' is persistent"), !one.tags.empty());
  }
}

TEST_F(FlushSchedule, FinalizeFlushesNothingWhereThereIsNothingOrAllIsPersistent) {
  PersistentJob job(2);
  expect_all_returned(job.start([](RankScope& scope) { scope.make_engine().finalize(); }));
  EXPECT_FALSE(job.logged("the parallel filesystem"));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{"a"});
  EXPECT_FALSE(job.logged("a of run 'test' is persistent"));
}

TEST_F(FlushSchedule, AFlushThatFailsInFinalizeIsLoggedAndTheStoresHaveTheCommit) {
  PersistentJob job(2);
  job.options.persistent.every = 3;
  Volume full;
  full.write_errno = ENOSPC;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", full);
    (void)engine.need_checkpoint();
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("a is not on the parallel filesystem"));
  job.disk.set_volume("/prefix", {});
  EXPECT_EQ(tags(job), std::vector<Tag>{});
  EXPECT_EQ(reopen(job).step, 1);
}

/// The more bytes there are, the longer ranks wait for each other while they put them, and only then.
TEST_F(FlushSchedule, AFlushMayTakeLongerThanOtherCalls) {
  PersistentJob job(2);
  job.options.comm.timeout_s = 3e8 * (1 - 1e-6);  // from 3e8 s on there is no deadline: that is seen here
  for (const std::uint64_t every : {std::uint64_t{0}, std::uint64_t{1}}) {
    job.options.persistent.every = every;
    std::atomic<int> unlimited = 0;
    job.in_front = [&](int /*rank*/, std::unique_ptr<Communicator> own) {
      return std::make_unique<testing::WatchedCommunicator>(std::move(own), [&](Deadline deadline) {
        if (!deadline.finite()) ++unlimited;
      });
    };
    job.options.store.lock_timeout_s = 1e-3;  // added where locks are waited for
    commit_steps(job, {{"a", 1}});
    EXPECT_EQ(unlimited > 0, every == 1);
  }
}

/// The newest was damaged and nothing was opened since: what is left is not where this job ended.
TEST_F(FlushSchedule, FinalizeFlushesNothingAfterALoss) {
  PersistentJob job(2);
  job.options.store.keep = 2;
  job.options.persistent.every = 0;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.options.persistent.every = 3;
  job.options.open.verify = Verify::headers;
  const std::string path = faults::container_of(job.disk, 1, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    find_damaged(engine, scope.rank, latest, "b");
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{});
}

/// A flush takes long, and a node may be lost in it: what the stores can do for the commit is done before.
TEST_F(FlushSchedule, ACommitIsProtectedBeforeItIsFlushed) {
  PersistentJob job(3);
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  const std::uint64_t operations = job.operations[0];
  job.kill_all_ranks = true;
  int begun = 0;
  for (std::uint64_t n = 1; n <= operations; ++n) {
    job.disk.restore(before);
    job.disk.stop_world_after(0, n, n);
    (void)job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      engine.close();
      commit_step(engine, scope.rank, "b", 2);
    });
    const auto after = job.disk.snapshot();
    const bool has_begun =
        std::ranges::any_of(after, [](const auto& one) { return one.first.starts_with("/prefix/b."); });
    if (!has_begun || tags(job).front() == "b") continue;
    ++begun;
    lose_stores(job, {1});
    EXPECT_EQ(reopen(job).step, 2) << "all died in operation " << n;
  }
  EXPECT_GT(begun, 0);
}

/// A start that could not see the prefix does not know what is there; what is, a flush leaves as it is.
TEST_F(FlushSchedule, WhatThePrefixHasIsNotWrittenAgain) {
  PersistentJob job(3);
  commit_steps(job, {{"a", 1}});
  Volume gone;
  gone.read_errno = ESTALE;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", gone);
    (void)engine.need_checkpoint();
    engine.create("b");
    engine.abandon();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", {});
    (void)engine.need_checkpoint();
    EXPECT_NE(engine.level("a"), Level::persistent);
    const std::uint64_t operations = job.disk.operations(2);  // of a rank that writes its container alone
    engine.wait("a", Level::persistent);
    EXPECT_EQ(engine.level("a"), Level::persistent);
    EXPECT_EQ(job.disk.operations(2), operations);
  }));
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).step, 1);
}

}  // namespace
}  // namespace kedge::faults::flush_schedule_test
