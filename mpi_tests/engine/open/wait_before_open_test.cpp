// wait for what an earlier start committed, before anything is opened.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::wait_before_open_test {
namespace {

class WaitBeforeOpen : public FlushFixture {
 protected:
  WaitBeforeOpen() {
    job.options.persistent.every = 0;
    job.options.store.keep = 2;
    commit_steps(job, {{"a", 1}, {"b", 2}});
  }
  PersistentJob job{4};
};

TEST_F(WaitBeforeOpen, FindsWhatTheStoresHold) {
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    job.options.pipeline.mode = mode;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.wait("b", Level::protected_);
      EXPECT_TRUE(engine.wait_for("b", Level::persistent, std::chrono::seconds(10)));
      EXPECT_EQ(engine.level("b"), Level::persistent);
      EXPECT_EQ(engine.open("a"), "a") << "the flush retires nothing: nothing was opened";
      EXPECT_EQ(load_step(engine, scope.rank), 1);
      engine.close();
    }));
    EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
  }
}

TEST_F(WaitBeforeOpen, AndCreateGoesOnAsAfterAStart) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.wait("a", Level::protected_);
    commit_step(engine, scope.rank, "c", 3);
    engine.wait("c", Level::persistent);
  }));
  EXPECT_EQ(reopen(job).step, 3);
}

TEST_F(WaitBeforeOpen, WhatIsNotThereIsSaidAsItIs) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const auto early = failure_of([&] { engine.on_complete("b", Level::persistent, [](const auto&) {}); });
    EXPECT_TRUE(early && says(early->message, {"has not surveyed the stores yet", "call open"}))
        << faults::text_of(early);
    const auto failure = failure_of([&] { engine.wait("c", Level::protected_); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::not_found);
    EXPECT_TRUE(says(failure->message, {"the node-local stores have no commit 'c'"})) << failure->message;
    engine.on_complete("b", Level::protected_, [](const auto&) {});
  }));
}

/// wait rebuilds no container that was lost with a node: its error says to open the commit first.
TEST_F(WaitBeforeOpen, AfterALossItSaysToOpenIt) {
  lose_stores(job, {1});
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const auto failure = failure_of([&] { engine.wait("b", Level::persistent); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::not_found);
    EXPECT_TRUE(says(failure->message, {"open this commit first"})) << failure->message;
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    engine.wait("b", Level::persistent);
  }));
  EXPECT_EQ(tags(job), std::vector<Tag>{"b"});
}

}  // namespace
}  // namespace kedge::faults::wait_before_open_test
