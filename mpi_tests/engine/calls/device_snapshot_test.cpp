// Regions in the memory of a GPU that are copied there first (device.snapshot): commit returns before it is sealed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/device_fixture.hpp"

namespace kedge::faults {
namespace {

constexpr std::size_t kSize = 5 * kMiB + 3;
constexpr std::size_t kSmall = 70000;  // a few pieces of the simulated disk

class DeviceSnapshot : public DeviceMemory {
 protected:
  DeviceSnapshot() { use(job); }
  void use(SimulatedJob& any) {
    any.options.device.snapshot = true;
    any.options.pipeline.mode = PipelineMode::background;
    any.options.pipeline.max_pending = 1;
    any.surroundings = [this](int rank, engine::Environment& environment) {
      environment.devices = of(rank);
      environment.waits_for_worker = false;
    };
  }
};

/// A rank's application: one field on its device, and a number on the host.
class Application {
 public:
  Application(ModelDevices& devices, Engine& engine, std::size_t size_bytes = kSize)
      : engine_(engine), size_bytes_(size_bytes), field_(devices, 0, size_bytes) {}

  /// What it saves is gone when this returns.
  void save(int step, const std::function<void()>& before_field = [] {}) {
    step_ = step;
    fill(field_.contents(), static_cast<unsigned>(step));
    engine_.create(std::to_string(step));
    (void)engine_.save("step", {&step_, DataType::int32, Shape{}});
    before_field();
    (void)engine_.save("field", bytes_at(field_.address(), size_bytes_));
    std::ranges::fill(field_.contents(), std::byte{0});
  }
  void checkpoint(int step) {
    save(step);
    engine_.commit();
  }
  /// The step that is found, with everything right; -1 if there is none.
  int restore() {
    if (!engine_.open()) return -1;
    EXPECT_TRUE(engine_.load("step", {&step_, DataType::int32, Shape{}}));
    EXPECT_TRUE(engine_.load("field", room_at(field_.address(), size_bytes_)));
    engine_.close();
    std::vector<std::byte> wanted(size_bytes_);
    fill(wanted, static_cast<unsigned>(step_));
    EXPECT_TRUE(std::ranges::equal(field_.contents(), wanted)) << "step " << step_;
    return step_;
  }

 private:
  Engine& engine_;
  std::size_t size_bytes_;
  ModelDevices::Array field_;
  int step_ = 0;
};

TEST_F(DeviceSnapshot, CommitReturnsBeforeItIsSealed) {
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    Engine engine = scope.make_engine();
    Application application(own, engine);
    application.checkpoint(1);
    EXPECT_EQ(own.copied_within(), 0U) << "the first of a structure needs HDF5";
    EXPECT_GE(engine.level("1"), Level::local);
    for (int step = 2; step < 5; ++step) {
      const std::string tag = std::to_string(step);
      engine.pause();
      application.checkpoint(step);
      EXPECT_EQ(engine.level(tag), Level::snapshot);
      EXPECT_GE(engine.level(std::to_string(step - 1)), Level::local);
      engine.wait(tag, Level::snapshot);
      EXPECT_EQ(engine.level(tag), Level::snapshot);
      engine.resume();
      engine.wait(tag, Level::local);
      EXPECT_GE(engine.level(tag), Level::local);
      EXPECT_EQ(own.allocated_bytes(), kSize) << "it is used again";
      EXPECT_EQ(own.copied_within(), static_cast<std::size_t>(step - 1) * kSize);
    }
    EXPECT_EQ(application.restore(), 4);
    EXPECT_EQ(engine.counters().commits, 4U);
    engine.finalize();
    EXPECT_EQ(own.allocated_bytes(), 0U);
    EXPECT_EQ(own.pinned_bytes(), 0U);
  }));
  EXPECT_FALSE(job.logged("device.snapshot")) << "all is as it was asked for";
}


TEST_F(DeviceSnapshot, TheNextOneWaitsUntilItIsSealedAndHasItAsParent) {
  job.options.store.keep = 2;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    for (int step = 1; step < 5; ++step) {
      application.save(step);
      EXPECT_GE(engine.level(std::to_string(step - 1)), step == 1 ? Level::none : Level::local);
      engine.commit();
    }
    EXPECT_EQ(engine.open(), "4") << "open waits, too";
    const Id128 parent_id = engine.info().parent_id;
    engine.close();
    EXPECT_EQ(engine.open(Tag("3")), "3");
    EXPECT_EQ(engine.info().id, parent_id);
    engine.close();
  }));
}

TEST_F(DeviceSnapshot, FinalizeSealsIt) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(2);
    EXPECT_EQ(engine.level("2"), Level::snapshot);
    engine.finalize();
    EXPECT_GE(engine.level("2"), Level::local);
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U);
    EXPECT_EQ(of(scope.rank)->pinned_bytes(), 0U) << "the application may reset its GPU now";
  }));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(Application(*of(scope.rank), engine).restore(), 2);
  }));
}

TEST_F(DeviceSnapshot, AnAbandonedOneGivesItsMemoryBack) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    for (int step = 2; step < 5; ++step) {
      application.save(step);
      engine.abandon();
    }
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), kSize);
    application.checkpoint(5);
    EXPECT_EQ(application.restore(), 5);
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), kSize);
  }));
}

// HDF5 makes the new structure, in the application's thread: before and after the copy.
TEST_F(DeviceSnapshot, WithOtherRegionsThanBeforeItIsSealedInCommit) {
  for (const bool field_first : {true, false}) {
    SimulatedJob own{2};
    use(own);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      const std::vector<std::byte> more(3 * kMiB, std::byte{7});
      application.checkpoint(1);
      application.checkpoint(2);
      const auto copied = of(scope.rank)->copied_within();
      EXPECT_EQ(copied % kSize, 0U);
      // On one rank only, which needs HDF5.
      const auto save_more = [&] {
        if (scope.rank == 1) (void)engine.save("more", bytes_at(more.data(), more.size()));
      };
      application.save(3, [&] { field_first ? void() : save_more(); });
      if (field_first) save_more();
      engine.commit();
      EXPECT_GE(engine.level("3"), Level::local);
      EXPECT_EQ(application.restore(), 3);
      EXPECT_TRUE(engine.open());
      std::vector<std::byte> loaded(more.size());
      if (scope.rank == 1) {
        EXPECT_TRUE(engine.load("more", room_at(loaded.data(), loaded.size())));
        EXPECT_TRUE(loaded == more);
      }
      engine.close();
      application.checkpoint(4);  // fewer than before
      EXPECT_EQ(application.restore(), 4);
      application.checkpoint(5);
      EXPECT_EQ(application.restore(), 5);
    }));
    EXPECT_TRUE(own.logged("3 is no snapshot: its regions differ from those of the checkpoint before on some rank"));
    EXPECT_FALSE(own.logged("4 is no snapshot")) << "it is said once";
  }
}

TEST_F(DeviceSnapshot, WithoutMemoryForItOneRankOrAllGoTheOrdinaryWay) {
  for (const bool on_all : {false, true}) {
    SimulatedJob own{2};
    use(own);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      application.checkpoint(1);
      if (on_all || scope.rank == 1) of(scope.rank)->fail("allocate", 1, ErrorCode::no_space);
      engine.pause();
      application.checkpoint(2);
      EXPECT_EQ(engine.level("2") == Level::snapshot, !on_all) << "one rank's copy is enough";
      engine.resume();
      EXPECT_EQ(application.restore(), 2);
      application.checkpoint(3);
      EXPECT_EQ(application.restore(), 3);
      EXPECT_EQ(of(scope.rank)->allocated_bytes(), kSize) << "once more there was room";
    }));
    EXPECT_EQ(own.logged("rank 0: no GPU memory for a snapshot of region 'field' (5.0 MiB)"), on_all);
    EXPECT_TRUE(own.logged("rank 1: no GPU memory for a snapshot of region 'field' (5.0 MiB): it is copied to the "
                           "store in save instead; free GPU memory, or set device.snapshot = false"));
  }
}

TEST_F(DeviceSnapshot, ACopyThatFailsOnOneRankFailsCommitOnAll) {
  for (const std::string what : {"copy_within", "wait"}) {
    SimulatedJob own{2};
    use(own);
    OnEachRank thrown(2);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      application.checkpoint(1);
      if (scope.rank == 1) of(1)->fail(what, 1, ErrorCode::invalid_argument);
      thrown.put(scope.rank, failure_of([&] { application.checkpoint(2); }));
      EXPECT_EQ(engine.level("2"), Level::none);
      EXPECT_EQ(application.restore(), 1);
      application.checkpoint(3);
      EXPECT_EQ(application.restore(), 3);
    }));
    const auto failure = thrown.same();
    ASSERT_TRUE(failure) << what;
    EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_NE(failure->message.find("region 'field'"), std::string::npos) << failure->message;
  }
}

/// Steps 1 to 5, the third of which meets what `strike` does on rank 1 once commit has returned: all ranks meet it the
/// same way, nothing that was committed is lost, and the next one succeeds. Nothing if it was sealed all the same.
std::optional<Failure> fails_to_seal(SimulatedJob& job, const std::vector<std::shared_ptr<ModelDevices>>& devices,
                                     std::size_t size_bytes, const std::function<void()>& strike) {
  OnEachRank waited(2);
  OnEachRank told(2);
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *devices[static_cast<std::size_t>(scope.rank)];
    Engine engine = scope.make_engine();
    Application application(own, engine, size_bytes);
    application.checkpoint(1);
    application.checkpoint(2);
    engine.wait("2", Level::local);
    engine.pause();
    application.checkpoint(3);
    EXPECT_EQ(engine.level("3"), Level::snapshot);
    engine.on_complete("3", Level::local,
                       [&](const std::optional<Failure>& failure) { told.put(scope.rank, failure); });
    if (scope.rank == 1) strike();
    engine.resume();
    const auto failure = failure_of([&] { engine.wait("3", Level::local); });
    waited.put(scope.rank, failure);
    if (scope.rank == 1) job.disk.heal(1);
    (void)engine.need_checkpoint();  // nobody goes on before that
    EXPECT_EQ(engine.level("3"), failure ? Level::none : Level::local);
    EXPECT_EQ(engine.level("2"), failure ? Level::local : Level::none);
    EXPECT_EQ(code_of([&] { engine.wait("3", Level::snapshot); }), failure ? std::optional(failure->code) : std::nullopt);
    EXPECT_EQ(engine.counters().commits_failed, failure ? 1U : 0U);
    EXPECT_EQ(application.restore(), failure ? 2 : 3);
    engine.pause();
    application.checkpoint(4);
    EXPECT_EQ(engine.level("4"), Level::snapshot) << "it is no reason not to go on so";
    engine.resume();
    engine.wait("4", Level::local);
    EXPECT_EQ(application.restore(), 4);
    EXPECT_EQ(own.allocated_bytes(), size_bytes);
    application.checkpoint(5);
  }));
  const auto failure = waited.same();
  EXPECT_EQ(text_of(told.same()), text_of(failure));
  EXPECT_EQ(job.logged("the snapshot of 3 could not be brought to the node-local store: "), failure.has_value());
  EXPECT_EQ(job.logged("; 2 is the newest checkpoint"), failure.has_value());
  return failure;
}

TEST_F(DeviceSnapshot, WhatFailsOnTheWayToTheStoreIsTheSameOnAllRanks) {
  const auto failure = fails_to_seal(job, devices, kSize, [&] { of(1)->fail("copy", 1, ErrorCode::io); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_NE(failure->message.find("region 'field'"), std::string::npos) << failure->message;
}

/// Each piece that is written, and each file that is synced.
TEST_F(DeviceSnapshot, AFullStoreAtAnyOperationOfTheSealIsTheSameOnAllRanks) {
  for (const bool durable : {false, true}) {
    std::uint64_t n = 1;
    for (; n < 100 && !HasFailure(); ++n) {
      SimulatedJob own(2, durable ? SimulatedJob::block_disk() : SimulatedJob::memory_disk());
      use(own);
      own.options.store.durable = durable;
      const auto failure =
          fails_to_seal(own, devices, kSmall, [&] { own.disk.fail(1, own.disk.operations(1) + n, ENOSPC); });
      if (!failure) break;
      EXPECT_EQ(failure->code, ErrorCode::no_space);
      EXPECT_EQ(failure->rank, 1);
    }
    EXPECT_GT(n, 8U) << "field, structure and seal";
    EXPECT_LT(n, 100U);
  }
}

/// Steps until somebody dies. What was local is found again, and nothing that was not whole.
TEST_F(DeviceSnapshot, ADeathAtAnyOperationCostsNothingThatWasLocal) {
  for (const bool together : {false, true}) {
    for (std::uint64_t n = 1; n < 1000 && !HasFailure(); ++n) {
      SimulatedJob own{2};
      use(own);
      own.all_die_together = together;
      std::atomic<int> newest_local = 0;
      std::atomic<int> newest = 0;
      own.disk.stop_world_after(1, n, n);
      const auto outcomes = own.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        Application application(*of(scope.rank), engine, kSmall);
        for (int step = 1; step < 5; ++step) {
          newest = step;
          application.save(step);  // create: the one before is local
          if (step > 1 && scope.rank == 0) newest_local = step - 1;
          engine.commit();
          if (scope.rank == 0 && engine.level(std::to_string(step)) >= Level::local) newest_local = step;
        }
        engine.finalize();
        if (scope.rank == 0) newest_local = 4;
      });
      if (outcomes[1].returned()) {
        EXPECT_GT(n, 40U);
        break;
      }
      expect_returned(own.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        const int found = std::max(0, Application(*of(scope.rank), engine, kSmall).restore());
        EXPECT_GE(found, newest_local) << "operation " << n;
        EXPECT_LE(found, newest) << "operation " << n;
      }));
    }
  }
}

TEST_F(DeviceSnapshot, ADeviceThatIsLostWhileItIsSealedEndsTheEngineOnAllRanks) {
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(2);
    if (scope.rank == 1) of(1)->fail("copy", 1, ErrorCode::device_failed);
    thrown.put(scope.rank, failure_of([&] { engine.create("3"); }));
    EXPECT_EQ(code_of([&] { engine.create("4"); }), ErrorCode::bad_state);
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed);
  for (int rank = 0; rank < 2; ++rank) devices[static_cast<std::size_t>(rank)] = std::make_shared<ModelDevices>();
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(Application(*of(scope.rank), engine).restore(), 1);
  }));
}

TEST_F(DeviceSnapshot, WithoutAWorkerItHasNoEffectAndOneLineSaysSo) {
  job.options.pipeline.mode = PipelineMode::inline_;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    for (const int step : {1, 2}) {
      application.checkpoint(step);
      EXPECT_GE(engine.level(std::to_string(step)), Level::local);
    }
    EXPECT_EQ(application.restore(), 2);
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U);
  }));
  EXPECT_TRUE(job.logged("device.snapshot has no effect: nothing brings snapshots to the store in the background"));
}

}  // namespace
}  // namespace kedge::faults
