// A snapshot whose copy or seal fails, fails on all ranks alike; a death at any operation or message, and an end in the
// middle, lose nothing that was local.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/calls/snapshot_fixture.hpp"
#include "harness/blocking_file_system.hpp"
#include "kedge/for_bindings.hpp"

namespace kedge::faults::device_snapshot_faults_test {
namespace {

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
    if (failure) {
      EXPECT_EQ(engine.level("2"), Level::local);
    }
    EXPECT_EQ(code_of([&] { engine.wait("3", Level::snapshot); }),
              failure ? std::optional(failure->code) : std::nullopt);
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
  auto failure = waited.same();
  EXPECT_EQ(text_of(told.same()), text_of(failure));
  EXPECT_EQ(job.logged("the snapshot of 3 could not be written to the node-local stores and is lost: "),
            failure.has_value());
  EXPECT_EQ(job.logged("; 2 is still the newest checkpoint"), failure.has_value());
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
      own.kill_all_ranks = together;
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

/// Two ranks, and each message of rank 1 is its last.
TEST_F(DeviceSnapshot, ADeathAtAnyMessageCostsNothingThatWasLocal) {
  for (std::uint64_t event = 1; event < 1000 && !HasFailure(); ++event) {
    SimulatedJob own{2};
    use(own);
    std::atomic<int> newest_local = 0;
    own.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, event, testing::StopKind::die); };
    const auto outcomes = own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine, kSmall);
      for (int step = 1; step < 4; ++step) {
        application.save(step);
        if (step > 1 && scope.rank == 0) newest_local = step - 1;
        engine.commit();
      }
      engine.finalize();
    });
    if (outcomes[1].returned()) {
      EXPECT_GT(event, 40U);
      break;
    }
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_GE(std::max(0, Application(*of(scope.rank), engine, kSmall).restore()), newest_local) << event;
    }));
  }
}

/// The worker copies when its engine is given up or destroyed, until a moment after that has begun.
class SnapshotIsCut : public DeviceSnapshot {
 protected:
  SnapshotIsCut() {
    for (const auto& one : devices) {
      one->on_call = [this](const std::string& what) {
        if (what == "copy") gate.pass();
      };
    }
  }
  ~SnapshotIsCut() override {
    if (opens.joinable()) opens.join();
  }
  void open_soon() {
    opens = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      gate.open();
    });
  }
  void expect_found(int step) {
    expect_returned(job.start([&](RankScope& scope) {
      EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U);
      EXPECT_EQ(of(scope.rank)->pinned_bytes(), 0U);
      EXPECT_EQ(of(scope.rank)->registered_bytes(), 0U);
      Engine engine = scope.make_engine();
      EXPECT_EQ(Application(*of(scope.rank), engine).restore(), step);
    }));
  }
  Gate gate;
  std::thread opens;
};

TEST_F(SnapshotIsCut, ByFinalizeThatHasNoTimeAndALineSaysSo) {
  const auto logs = job.options.log.sink;
  job.options.log.sink = [&](LogLevel level, std::string_view line) {
    logs(level, line);
    if (line.find("finalize stopped waiting") != std::string_view::npos) open_soon();
  };
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    (void)engine.need_checkpoint();
    gate.close();
    (void)engine.need_checkpoint();
    application.checkpoint(2);
    EXPECT_FALSE(engine.wait_for("2", Level::local, std::chrono::seconds(0)));
    EXPECT_FALSE(engine.finalize_for(std::chrono::seconds(0)));
    EXPECT_TRUE(ForBindings::committed(engine, "field").empty()) << "nobody seals it any more";
  }));
  EXPECT_TRUE(job.logged(
      "finalize stopped waiting at once, before 2 was written to the node-local stores: unless the next start "
      "finds it complete, 1 is the newest checkpoint; give finalize more time, or call wait(tag, local) first"));
  expect_found(1);
}

TEST_F(SnapshotIsCut, ByTheEndOfTheEngine) {
  std::atomic<int> ending = 0;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    for (int step = 1; step < 9; ++step) application.checkpoint(step);
    engine.wait("8", Level::local);
    EXPECT_GT(of(scope.rank)->registered_bytes(), 0U) << "it goes straight to the store";
    (void)engine.need_checkpoint();
    gate.close();
    (void)engine.need_checkpoint();
    application.checkpoint(9);
    EXPECT_EQ(engine.level("9"), Level::snapshot);
    if (++ending == 2) open_soon();
  }));
  expect_found(8);
}

// What it has not begun to copy it leaves.
TEST_F(SnapshotIsCut, BetweenItsRegions) {
  std::array<std::atomic<int>, 2> copies{};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    devices[rank]->on_call = [this, &copies, rank](const std::string& what) {
      if (what != "copy") return;
      ++copies.at(rank);
      gate.pass();
    };
  }
  std::atomic<int> ending = 0;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const ModelDevices::Array field(*of(scope.rank), 0, kSmall);
    const auto commit = [&](const char* tag) {
      engine.create(tag);
      for (const char* name : {"a", "b", "c", "d"}) {
        EXPECT_TRUE(engine.save(name, bytes_at(field.address(), kSmall)));
      }
      engine.commit();
    };
    commit("1");
    engine.wait("1", Level::local);
    (void)engine.need_checkpoint();
    copies.at(static_cast<std::size_t>(scope.rank)) = 0;
    gate.close();
    (void)engine.need_checkpoint();
    commit("2");
    EXPECT_EQ(engine.level("2"), Level::snapshot);
    while (copies.at(static_cast<std::size_t>(scope.rank)) == 0) std::this_thread::yield();
    if (++ending == 2) open_soon();
    EXPECT_FALSE(engine.finalize_for(std::chrono::seconds(0)));
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U) << "the application may reset its GPU now";
  }));
  EXPECT_EQ(copies[0], 1);
  EXPECT_EQ(copies[1], 1);
}

// The newest of a tag is what is asked for, and the older one is as it was.
TEST_F(DeviceSnapshot, OfATagThatIsThereTwiceTheNewestFailed) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(1);
    EXPECT_EQ(engine.level("1"), Level::snapshot);
    if (scope.rank == 0) of(0)->fail("copy", 1, ErrorCode::io);
    EXPECT_EQ(code_of([&] { engine.wait("1", Level::local); }), ErrorCode::io);
    EXPECT_EQ(engine.level("1"), Level::local);
    bool is_told = false;
    engine.on_complete("1", Level::local, [&](const auto& failure) { is_told = failure.has_value(); });
    (void)engine.need_checkpoint();
    EXPECT_TRUE(is_told);
    application.checkpoint(1);
    engine.wait("1", Level::local);
    EXPECT_EQ(application.restore(), 1);
  }));
}

}  // namespace
}  // namespace kedge::faults::device_snapshot_faults_test
