// Regions in the memory of a GPU: saved and loaded like those of the host, in the order of their streams; what fails
// there, once or for good, fails on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/device_fixture.hpp"

namespace kedge::faults::device_memory_test {
namespace {

TEST_F(DeviceMemory, GoesThereAndBackAndToTheHost) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, 5 * kMiB + 3, 17 * kMiB + 1}) {
    expect_returned(job.start([&](RankScope& scope) {
      const ModelDevices::Array array(*of(scope.rank), 0, size);
      fill(array.contents(), static_cast<unsigned>(scope.rank + 1));
      const std::vector<std::byte> saved(array.contents().begin(), array.contents().end());
      Engine engine = scope.make_engine();
      engine.create("a");
      EXPECT_TRUE(engine.save("device", bytes_at(array.address(), size)));
      EXPECT_TRUE(engine.save("host", bytes_at(saved.data(), size)));
      std::ranges::fill(array.contents(), std::byte{0});
      engine.commit();
      EXPECT_TRUE(engine.open());
      std::vector<std::byte> loaded(size);
      EXPECT_TRUE(engine.load("device", room_at(loaded.data(), size)));
      EXPECT_TRUE(loaded == saved);
      EXPECT_TRUE(engine.load("host", room_at(array.address(), size)));
      EXPECT_TRUE(std::ranges::equal(array.contents(), saved));
      engine.close();
    }));
  }
}

TEST_F(DeviceMemory, OfAState) {
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 1, 4096);
    fill(array.contents(), 3);
    const std::vector<std::byte> saved(array.contents().begin(), array.contents().end());
    int step = 5;
    State state;
    state.add("step", step).add("field", room_at(array.address(), 4096), Replicated{});
    Engine engine = scope.make_engine();
    engine.checkpoint("a", state);
    step = 0;
    std::ranges::fill(array.contents(), std::byte{0});
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_EQ(step, 5);
    EXPECT_TRUE(std::ranges::equal(array.contents(), saved));
    EXPECT_GT(of(scope.rank)->pinned_bytes(), 0U);
    engine.finalize();
    EXPECT_EQ(of(scope.rank)->pinned_bytes(), 0U) << "the application may reset its GPU now";
  }));
}

// What was launched before save is in the checkpoint; what is on another stream is waited for only without a stream.
TEST_F(DeviceMemory, IsSavedAfterWhatItsStreamWasGiven) {
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    const ModelDevices::Array array(own, 0, 64);
    int stream = 0;
    int other = 0;
    bool other_ran = false;
    const auto launch = [&](std::byte value) {
      own.give({&stream}, [&array, value] { std::ranges::fill(array.contents(), value); });
      own.give({&other}, [&] { other_ran = true; });
    };
    Engine engine = scope.make_engine();
    engine.create("a");
    launch(std::byte{1});
    Region region = bytes_at(array.address(), 64);
    region.stream = DeviceStream{&stream};
    EXPECT_TRUE(engine.save("one", region));
    EXPECT_FALSE(other_ran);
    launch(std::byte{2});
    EXPECT_TRUE(engine.save("two", bytes_at(array.address(), 64)));
    EXPECT_TRUE(other_ran);
    engine.commit();

    EXPECT_TRUE(engine.open());
    std::vector<std::byte> loaded(64);
    EXPECT_TRUE(engine.load("one", room_at(loaded.data(), 64)));
    EXPECT_TRUE(std::ranges::all_of(loaded, [](std::byte byte) { return byte == std::byte{1}; }));
    EXPECT_TRUE(engine.load("two", room_at(loaded.data(), 64)));
    EXPECT_TRUE(std::ranges::all_of(loaded, [](std::byte byte) { return byte == std::byte{2}; }));
    launch(std::byte{3});  // which may not come after what is loaded
    MutableRegion target = room_at(array.address(), 64);
    target.stream = DeviceStream{&stream};
    EXPECT_TRUE(engine.load("two", target));
    own.synchronize({}, std::nullopt);
    EXPECT_TRUE(std::ranges::all_of(array.contents(), [](std::byte byte) { return byte == std::byte{2}; }));
    engine.close();
  }));
}

// A stream fills memory of the GPU, and pinned memory of the host, when somebody waits for it.
TEST_F(DeviceMemory, InAStateIsSavedAndLoadedAfterWhatItsStreamWasGiven) {
  for (const bool by_function : {false, true}) {
    expect_returned(job.start([&](RankScope& scope) {
      ModelDevices& own = *of(scope.rank);
      const ModelDevices::Array array(own, 0, 64);
      std::vector<std::byte> pinned(64);
      int stream = 0;
      int other = 0;
      bool other_ran = false;
      const auto launch = [&](std::byte value) {
        own.give({&stream}, [&, value] {
          std::ranges::fill(array.contents(), value);
          std::ranges::fill(pinned, value);
        });
        own.give({&other}, [&] { other_ran = true; });
      };
      State state;
      for (const auto& [name, data] :
           {std::pair<const char*, void*>("gpu", array.address()), {"host", pinned.data()}}) {
        MutableRegion region = room_at(data, 64);
        region.stream = DeviceStream{&stream};
        if (by_function) state.add(name, [region] { return region; });
        else state.add(name, region);
      }
      Engine engine = scope.make_engine();
      launch(std::byte{1});
      engine.checkpoint("a", state);
      EXPECT_FALSE(other_ran) << "it is not waited for";
      launch(std::byte{2});  // which may not come after what is loaded
      EXPECT_EQ(engine.restore(state), "a");
      own.synchronize({}, std::nullopt);
      EXPECT_TRUE(std::ranges::all_of(array.contents(), [](std::byte byte) { return byte == std::byte{1}; }));
      EXPECT_TRUE(std::ranges::all_of(pinned, [](std::byte byte) { return byte == std::byte{1}; }));
    }));
  }
}

// Else checkpoints would seem expensive to schedule.overhead, and be too few.
TEST_F(DeviceMemory, StepsThatAGpuHasYetToDoAreNoCostOfTheCheckpoint) {
  const std::vector<std::shared_ptr<FakeClock>> clocks{std::make_shared<FakeClock>(), std::make_shared<FakeClock>()};
  job.surroundings = [&](int rank, start::Environment& environment) {
    environment.devices = of(rank);
    environment.clock = clocks[static_cast<std::size_t>(rank)];
  };
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 0, 64);
    const auto clock = clocks[static_cast<std::size_t>(scope.rank)];
    int stream = 0;
    Engine engine = scope.make_engine();
    engine.create("a");
    of(scope.rank)->give({&stream}, [&] { clock->sleep_for(std::chrono::seconds(100)); });
    Region region = bytes_at(array.address(), 64);
    region.stream = DeviceStream{&stream};
    EXPECT_TRUE(engine.save("field", region));
    engine.commit();
    EXPECT_GE(clock->seconds(), 100);
    EXPECT_LT(engine.counters().blocked_last_s, 100);
  }));
}

TEST_F(DeviceMemory, WhatIsNotThatLongIsRefusedByName) {
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 0, 4096);
    Engine engine = scope.make_engine();
    commit_value(engine, "before", 7);
    engine.create("a");
    EXPECT_EQ(code_of_status(engine.save("field", bytes_at(array.address(), scope.rank == 1 ? 4097 : 4096))),
              scope.rank == 1 ? std::optional(ErrorCode::invalid_argument) : std::nullopt);
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 7));
    commit_value(engine, "after", 8);
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
  EXPECT_NE(failure->message.find("region 'field'"), std::string::npos) << failure->message;
}

struct Fault {
  std::string what;
  std::uint64_t nth = 1;
};

class DeviceFails : public DeviceMemory, public testing::WithParamInterface<Fault> {};

TEST_P(DeviceFails, ForOnceAndTheNextCheckpointSucceeds) {
  const std::size_t size = 33 * kMiB;  // three pieces
  for (const ErrorCode code : {ErrorCode::no_space, ErrorCode::invalid_argument}) {
    OnEachRank saving(2);
    OnEachRank loading(2);
    expect_returned(job.start([&](RankScope& scope) {
      const ModelDevices::Array array(*of(scope.rank), 0, size);
      fill(array.contents(), 4);
      Engine engine = scope.make_engine();
      commit_value(engine, "before", 7);
      if (scope.rank == 1) of(1)->fail(GetParam().what, GetParam().nth, code);
      engine.create("a");
      (void)engine.save("field", bytes_at(array.address(), size));
      saving.put(scope.rank, failure_of([&] { engine.commit(); }));
      EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 7));

      engine.create("b");
      EXPECT_TRUE(engine.save("field", bytes_at(array.address(), size)));
      engine.commit();
      EXPECT_TRUE(engine.open());
      if (scope.rank == 1 && GetParam().what != "pinned" && GetParam().what != "queue") {
        of(1)->fail(GetParam().what, GetParam().nth, code);
      }
      (void)engine.load("field", room_at(array.address(), size));
      loading.put(scope.rank, failure_of([&] { engine.close(); }));
    }));
    const auto saved = saving.same();
    ASSERT_TRUE(saved) << GetParam().what;
    EXPECT_EQ(saved->code, code);
    EXPECT_EQ(saved->rank, 1);
    EXPECT_NE(saved->message.find("field"), std::string::npos) << saved->message;
    const auto loaded = loading.same();
    if (GetParam().what != "pinned" && GetParam().what != "queue") {
      ASSERT_TRUE(loaded) << GetParam().what;
      EXPECT_EQ(loaded->code, code);
    }
  }
}

TEST_P(DeviceFails, ForGoodAndTheEngineEndsOnAllRanks) {
  const std::size_t size = 33 * kMiB;
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 0, size);
    Engine engine = scope.make_engine();
    commit_value(engine, "before", 7);
    if (scope.rank == 1) of(1)->fail(GetParam().what, GetParam().nth, ErrorCode::device_failed);
    engine.create("a");
    (void)engine.save("field", bytes_at(array.address(), size));
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
    EXPECT_EQ(code_of([&] { engine.create("b"); }), ErrorCode::bad_state);
    EXPECT_EQ(engine.level("before"), Level::local);
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed);
  devices = {std::make_shared<ModelDevices>(), std::make_shared<ModelDevices>()};
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 7));
  }));
}

INSTANTIATE_TEST_SUITE_P(Calls, DeviceFails,
                         testing::Values(Fault{"synchronize", 1}, Fault{"pinned", 1}, Fault{"pinned", 3},
                                         Fault{"queue", 1}, Fault{"queue", 2}, Fault{"copy", 1}, Fault{"copy", 3},
                                         Fault{"wait", 1}, Fault{"wait", 3}),
                         [](const auto& one) { return one.param.what + std::to_string(one.param.nth); });

}  // namespace
}  // namespace kedge::faults::device_memory_test
