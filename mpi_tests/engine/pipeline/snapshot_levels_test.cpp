// Snapshots are protected and flushed like other commits after they are sealed, a turn that was lost is made up for,
// and what needs HDF5 or comes while another commit is flushed is not one.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/calls/snapshot_fixture.hpp"
#include "harness/blocking_file_system.hpp"
#include "persist/tags.hpp"

namespace kedge::faults::snapshot_levels_test {
namespace {

/// Each rank on a node of its own, and every commit flushed; the prefix can be held up.
class SnapshotLevels : public DeviceSnapshot {
 protected:
  SnapshotLevels() {
    job.ranks_per_node = 1;
    job.options.persistent.every = 1;
    const auto ordinary = job.surroundings;
    job.surroundings = [this, ordinary](int rank, engine::EngineEnvironment& environment) {
      ordinary(rank, environment);
      environment.file_system = std::make_shared<BlockingFileSystem>(environment.file_system, gate);
    };
  }
  /// Nothing else is done meanwhile. COLLECTIVE.
  void on_one(Engine& engine, int rank, const std::function<void()>& step) {
    (void)engine.need_checkpoint();
    if (rank == 0) step();
    (void)engine.need_checkpoint();
  }
  Gate gate;
};

TEST_F(SnapshotLevels, AreProtectedAndFlushed) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    for (int step = 1; step < 4; ++step) {
      engine.pause();
      application.checkpoint(step);
      EXPECT_EQ(engine.level(std::to_string(step)) == Level::snapshot, step > 1);
      engine.resume();
    }
    engine.wait("3", Level::protected_);
    engine.wait("3", Level::persistent);
    EXPECT_EQ(engine.counters().flushes, 3U);
    EXPECT_EQ(engine.counters().protections, 3U);
    EXPECT_EQ(engine.counters().flushes_failed, 0U);
  }));
  for (const int node : {0, 1}) job.disk.remove_all("/nodes/node" + std::to_string(node));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(Application(*of(scope.rank), engine).restore(), 3);
  }));
}

// HDF5 makes the manifest then, in the application's thread.
TEST_F(SnapshotLevels, WithNewAttributesItIsSealedInCommitIfItIsToBeFlushed) {
  for (const std::uint64_t every : {1U, 3U}) {
    SimulatedJob own{2};
    use(own);
    own.options.persistent.every = every;
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const ModelDevices::Array field(*of(scope.rank), 0, kSmall);
      const auto checkpoint = [&](const Tag& tag, const Attributes& attributes) {
        engine.pause();
        engine.create(tag, attributes);
        EXPECT_TRUE(engine.save("field", bytes_at(field.address(), kSmall)));
        engine.commit();
        const bool is_snapshot = engine.level(tag) == Level::snapshot;
        engine.resume();
        return is_snapshot;
      };
      EXPECT_FALSE(checkpoint("1", {{"time", 1.0}}));
      EXPECT_TRUE(checkpoint("2", {{"time", 2.0}}));
      if (every == 1) {
        EXPECT_FALSE(checkpoint("3", {{"time", 3.0}, {"more", std::int64_t{3}}}));
      } else {
        EXPECT_FALSE(checkpoint("3", {{"time", 3.0}})) << "the first that is flushed";
      }
      EXPECT_TRUE(checkpoint("4", {{"time", 4.0}, {"more", std::int64_t{3}}}) || every == 1);
      engine.wait("4", Level::persistent);
      EXPECT_EQ(engine.counters().flushes_failed, 0U);
    }));
    EXPECT_TRUE(
        own.logged("device.snapshot: 3 is written to the node-local stores before commit returns, because its manifest "
                   "has a new structure"));
  }
}

// It would not be sealed before that is done.
TEST_F(SnapshotLevels, NotWhileAnotherCommitIsFlushed) {
  job.options.pipeline.max_pending = 2;
  gate.close();
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    on_one(engine, scope.rank, [&] { gate.await(2); });
    application.checkpoint(2);
    EXPECT_EQ(engine.level("2"), Level::local);
    on_one(engine, scope.rank, [&] { gate.open(); });
    engine.wait("2", Level::persistent);
    application.checkpoint(3);
    EXPECT_EQ(of(scope.rank)->copied_within(), kSize);
    EXPECT_EQ(application.restore(), 3);
  }));
}

TEST_F(SnapshotLevels, OneThatIsNotSealedIsUnderWay) {
  job.options.pipeline.when_full = WhenFull::fail;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.wait("1", Level::persistent);
    engine.pause();
    application.checkpoint(2);
    EXPECT_EQ(engine.counters().pending, 1U);
    EXPECT_EQ(code_of([&] { engine.create("3"); }), ErrorCode::no_space);
    engine.resume();
    engine.wait("2", Level::persistent);
    application.checkpoint(3);
    engine.wait("3", Level::persistent);
  }));
}

// Its turn is the next one's.
TEST_F(SnapshotLevels, ATurnIsMadeUpForIfTheCommitIsNotSealed) {
  job.options.persistent.every = 2;
  job.options.redundancy.every = 2;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    application.checkpoint(2);  // makes the manifest's structure
    application.checkpoint(3);
    engine.wait("3", Level::local);
    engine.pause();
    application.checkpoint(4);
    EXPECT_EQ(engine.level("4"), Level::snapshot);
    if (scope.rank == 1) of(1)->fail("copy", 1, ErrorCode::io);
    std::optional<ErrorCode> told;
    engine.on_complete("4", Level::persistent,
                       [&](const auto& failure) { told = failure ? std::optional(failure->code) : std::nullopt; });
    engine.resume();
    EXPECT_EQ(code_of([&] { engine.wait("4", Level::persistent); }), ErrorCode::io);
    application.checkpoint(5);
    EXPECT_EQ(told, ErrorCode::io);
    EXPECT_TRUE(engine.open());  // waits for what is under way
    engine.close();
    EXPECT_EQ(engine.level("5"), Level::persistent);
    EXPECT_EQ(engine.counters().protections, 2U) << "2 and 5";
    EXPECT_EQ(engine.counters().flushes, 2U);
  }));
}

}  // namespace
}  // namespace kedge::faults::snapshot_levels_test
