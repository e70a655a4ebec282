// When a checkpoint is not a snapshot though it might be, and what a snapshot leaves behind.
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>

#include "engine/calls/snapshot_fixture.hpp"

namespace kedge::faults::device_snapshot_rules_test {
namespace {

/// Commits a field of this size, whose bytes are gone when it returns.
void commit(Engine& engine, ModelDevices& devices, int step, std::size_t size_bytes) {
  const ModelDevices::Array field(devices, 0, size_bytes);
  engine.create(std::to_string(step));
  EXPECT_TRUE(engine.save("field", bytes_at(field.address(), size_bytes)));
  engine.commit();
}

// The level that is promised to the last one is taken before the job is killed.
TEST_F(DeviceSnapshot, TheLastCheckpointIsNoneAlsoIfItTurnsOutToBeThatAfterCreate) {
  watch_signals();
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    application.save(2);
    if (scope.rank == 1) signals[1] = SIGTERM;
    (void)engine.should_exit();
    engine.commit();
    EXPECT_GE(engine.level("2"), Level::local);
    EXPECT_EQ(application.restore(), 2);
  }));
}

TEST_F(DeviceSnapshot, WhereAllRegionsAreNewALineSaysSoAndNoMemoryIsKept) {
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    Engine engine = scope.make_engine();
    commit(engine, own, 1, kSize);
    commit(engine, own, 2, kSize);
    engine.wait("2", Level::local);
    EXPECT_EQ(own.allocated_bytes(), kSize);
    commit(engine, own, 3, 2 * kSize);
    EXPECT_GE(engine.level("3"), Level::local);
    EXPECT_EQ(own.allocated_bytes(), 0U);
  }));
  EXPECT_TRUE(
      job.logged("device.snapshot: 3 is written to the node-local stores before commit returns, because its "
                 "regions differ from the previous checkpoint's on some rank"));
}

TEST_F(DeviceSnapshot, WhileAnotherCommitIsUnderWayALineSaysSo) {
  job.options.pipeline.max_pending = 2;
  job.options.persistent.every = 1;
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    Engine engine = scope.make_engine();
    engine.pause();
    commit(engine, own, 1, kSize);
    commit(engine, own, 2, kSize);
    EXPECT_EQ(engine.level("2"), Level::local);
    EXPECT_EQ(own.allocated_bytes(), 0U);
    engine.resume();
  }));
  EXPECT_TRUE(
      job.logged("device.snapshot: 2 is written to the node-local stores before commit returns, because the "
                 "previous one is still being protected or flushed"));
}

// It is of one checkpoint, not of all that have its tag.
TEST_F(DeviceSnapshot, AFailureIsForgottenWithTheNextCommitOfItsTag) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine, kSmall);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(2);
    if (scope.rank == 1) of(1)->fail("copy", 1, ErrorCode::io);
    EXPECT_EQ(code_of([&] { engine.wait("2", Level::local); }), ErrorCode::io);
    for (const int step : {2, 3, 4}) {
      application.checkpoint(step);
      engine.wait(std::to_string(step), Level::local);
    }
    EXPECT_EQ(engine.open(), "4");
    engine.close();
    EXPECT_EQ(engine.level("2"), Level::none) << "it left the stores";
    EXPECT_EQ(code_of([&] { engine.wait("2", Level::local); }), ErrorCode::not_found);
    EXPECT_EQ(code_of([&] { engine.on_complete("2", Level::local, [](const auto&) {}); }), ErrorCode::not_found);
  }));
}

/// The first checkpoint of a start has no other to differ from, and does not use up the line for one that has.
TEST_F(DeviceSnapshot, ARestartIsNoReasonAndAChangeAfterItIs) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, *of(scope.rank), 1, kSmall);
  }));
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "1");
    engine.close();
    commit(engine, own, 2, kSmall);
    commit(engine, own, 3, kSmall / 2);
  }));
  EXPECT_FALSE(job.logged("device.snapshot: 2 is written"));
  EXPECT_TRUE(
      job.logged("device.snapshot: 3 is written to the node-local stores before commit returns, because its "
                 "regions differ from the previous checkpoint's on some rank"));
}

}  // namespace
}  // namespace kedge::faults::device_snapshot_rules_test
