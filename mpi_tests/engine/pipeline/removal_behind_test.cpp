// Old checkpoints leave the prefix while nobody waits for it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/deferred_work_fixture.hpp"

namespace kedge::faults::removal_behind_test {
namespace {

class RemovalBehind : public DeferredWorkFixture {
 protected:
  RemovalBehind() {
    job.options.persistent.every = 1;
    job.options.persistent.keep = 1;
    holds.removing = [this](const std::string& path) {
      if (path.starts_with("/prefix/") && path.ends_with(".h5")) gate.pass();
    };
  }
};

/// Room is there as soon as the flush is done, and whoever waits for the level does not wait for what it supersedes.
TEST_F(RemovalBehind, IsWaitedForByNoCheckpoint) {
  job.options.pipeline.max_pending = 1;
  LateOpener opener(gate);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    once(engine, scope.rank, [&] { gate.close(); });
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
    once(engine, scope.rank, [&] { await_blocked(1); });
    EXPECT_EQ(engine.counters().pending, 0U);
    commit_step(engine, scope.rank, "c", 3);
    EXPECT_EQ(engine.level("c"), Level::local);
    once(engine, scope.rank, [&] {
      EXPECT_FALSE(gate.is_open()) << "something waited for it";
      opener.open();
    });
    engine.finalize();  // and for what follows the last flush
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{"c"});
}

/// A checkpoint that is pinned while old ones are removed stays: the pin waits for the removal.
TEST_F(RemovalBehind, IsWaitedForByAPin) {
  LateOpener opener(gate);
  OnEachRank told(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    once(engine, scope.rank, [&] { gate.close(); });
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
    once(engine, scope.rank, [&] {
      await_blocked(1);
      opener.open();
    });
    told.put(scope.rank, failure_of([&] { engine.pin("a"); }));
    EXPECT_TRUE(gate.is_open());
    engine.finalize();
  }));
  EXPECT_EQ(told.same()->code, ErrorCode::not_found);
  EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
}

}  // namespace
}  // namespace kedge::faults::removal_behind_test
