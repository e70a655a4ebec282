// A later start of the run has begun, or begins while this one flushes: what counts as persistent is, nothing of the
// later one's is touched, and the old engine is dead.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "harness/watched_communicator.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::faults::overtaken_test {
namespace {

using ::testing::Contains;
using ::testing::Not;

/// How the commit "y" ended of which a later start began before rank 0's n-th vote or broadcast.
struct Ended {
  bool overtaken = false;
  Level level = Level::none;
  bool is_dead = false;
};

class Overtaken : public FlushFixture {
 protected:
  PersistentJob job{3};

  Ended commit_overtaken_at(std::uint64_t n) {
    PersistentJob one(2);  // anew for each n
    one.options.persistent.keep = 1;
    Ended ended;
    std::uint64_t left = 0;  // rank 0's: before the later start begins; 0: it does not
    const auto count_down = [&](Deadline) {
      if (left == 0 || --left != 0) return;
      persist::RunStart later({one.disk.view(0), "/prefix", "test"});
      (void)later.take_incarnation();
      later.mark_begun({});
      ended.overtaken = true;
    };
    one.in_front = [&](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
      if (rank != 0) return own;
      return std::make_unique<testing::WatchedCommunicator>(std::move(own), count_down);
    };
    expect_all_returned(one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "x", 1);
      if (scope.rank == 0) left = n;
      commit_step(engine, scope.rank, "y", 2);
      if (scope.rank == 0) {
        left = 0;
        ended.level = engine.level("y");
      } else {
        EXPECT_GE(engine.level("y"), Level::protected_);
      }
      const auto failure = attempt([&] { engine.create("z"); });
      if (scope.rank == 0) ended.is_dead = failure && failure->code == ErrorCode::bad_state;
    }));
    // What the engine said of its commit is so, and "x" goes for nothing less than a "y" that is there.
    const bool is_there = ended.level == Level::persistent;
    if (is_there) EXPECT_THAT(tags(one), Contains("y"));
    else EXPECT_THAT(tags(one), ::testing::AllOf(Contains("x"), Not(Contains("y"))));
    EXPECT_EQ(one.logged("y is not on the parallel filesystem"), !is_there);
    return ended;
  }
};

TEST_F(Overtaken, AtAnyMomentOfAFlush) {
  bool before_publish = false;
  bool after_publish = false;
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    const Ended ended = commit_overtaken_at(n);
    if (!ended.overtaken) break;
    ASSERT_LT(n, 200U);
    before_publish = before_publish || (ended.is_dead && ended.level != Level::persistent);
    after_publish = after_publish || (ended.is_dead && ended.level == Level::persistent);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_TRUE(before_publish);
  EXPECT_TRUE(after_publish) << "while it removes what persistent.keep lets go";
}

/// An old start that was overtaken commits and removes nothing.
TEST_F(Overtaken, AnOldStartLeavesThePrefixAlone) {
  const auto file_system = job.disk.view(0);
  job.options.run = "overtaken";
  reopen(job, latest, Newer::keep, {{"x", 1}, {"y", 2}});
  const auto entries = list(job).entries;
  persist::RunStart old_start({file_system, "/prefix", "overtaken"});
  (void)old_start.take_incarnation();
  old_start.mark_begun({});
  const persist::PrefixStorage old_prefix = persist::posix_prefix_storage(file_system, "/prefix", {}, &old_start);
  persist::TagEntry entry = *std::ranges::find(entries, "y", [](const auto& one) { return one.commit.tag; });
  entry.commit.tag = "z";
  ++entry.commit.generation;
  entry.directory = persist::tag_directory_name(entry.commit);
  old_prefix.writer->begin_commit(entry, 1000, {});
  persist::RunStart new_start({file_system, "/prefix", "overtaken"});
  (void)new_start.take_incarnation();
  new_start.mark_begun({});

  const auto before = job.disk.snapshot();
  const auto expect_busy = [&](const char* what, auto&& step) {
    const auto failure = attempt(step);
    ASSERT_TRUE(failure) << what;
    EXPECT_EQ(failure->code, ErrorCode::busy) << what;
  };
  const std::vector<std::byte> manifest(5000);
  expect_busy("begin", [&] { old_prefix.writer->begin_commit(entry, 1000, {}); });
  expect_busy("publish", [&] { (void)old_prefix.writer->publish(entry, manifest); });
  expect_busy("discard", [&] { old_prefix.remover->discard_unpublished(entry); });
  expect_busy("remove", [&] { old_prefix.remover->remove_commit(entries.back()); });
  expect_busy("sweep", [&] { (void)old_prefix.remover->remove_leftovers(entry.commit.run_id); });
  persist::PrefixCommitList history;
  const persist::RetractionResult retained = persist::retract_old_commits(old_prefix, persist::PrefixMarkers(old_start),
                                                                          history, {entry.commit.run_id, 1, {}, {}});
  ASSERT_TRUE(retained.failure);
  EXPECT_EQ(retained.failure->code, ErrorCode::busy);
  EXPECT_TRUE(retained.retracted.empty());
  const auto pin = [&](bool pinned) {
    set_pinned(old_prefix, persist::PrefixMarkers(old_start), entry.commit.run_id, "y", pinned);
  };
  expect_busy("pin", [&] { pin(true); });
  expect_busy("unpin", [&] { pin(false); });
  EXPECT_EQ(list(job).entries, entries);
  for (const auto& [path, was] : before) EXPECT_TRUE(job.disk.snapshot().contains(path)) << path;
  EXPECT_FALSE(job.disk.snapshot().contains("/prefix/" + entry.directory + "/checkpoint.h5"));
}

/// An engine that finds a later start is dead on all ranks, and the commit stays what it was.
TEST_F(Overtaken, AnEngineIsDead) {
  job.options.run = "overtaken";
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "x", 1);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) {
      persist::RunStart later({job.disk.view(0), "/prefix", "overtaken"});
      (void)later.take_incarnation();
      later.mark_begun({});
    }
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "y", 2);
    EXPECT_EQ(engine.level("y"), Level::protected_);
    const auto failure = attempt([&] { engine.create("z"); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::bad_state);
  }));
}

/// After `last_call` an engine that a later start has overtaken, on nodes where no lock of it is, takes no other.
void expect_last(PersistentJob& job, const std::function<void(Engine& old, int rank)>& last_call) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine old = scope.make_engine();
    commit_step(old, scope.rank, "x", 1);
    (void)old.need_checkpoint();
    if (scope.rank == 0) job.options.store.path = "/nodes/other-{node}";
    (void)old.need_checkpoint();
    const Engine later = scope.make_engine();
    last_call(old, scope.rank);
    EXPECT_EQ(code_of([&] { old.create("z"); }), ErrorCode::bad_state);
  }));
}

TEST_F(Overtaken, ACommitThatFindsALaterStartIsTheLastCallOfTheOld) {
  expect_last(job, [](Engine& old, int rank) { commit_step(old, rank, "y", 2); });
}

TEST_F(Overtaken, AWaitThatFindsALaterStartIsTheLastCallOfTheOld) {
  job.options.persistent.every = 0;
  expect_last(job,
              [](Engine& old, int) { EXPECT_EQ(code_of([&] { old.wait("x", Level::persistent); }), ErrorCode::busy); });
}

}  // namespace
}  // namespace kedge::faults::overtaken_test
