// Regions in the memory of a GPU: saved and loaded like those of the host, and what fails there fails on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/model_devices.hpp"

namespace kedge::faults {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

Region bytes_at(const void* data, std::size_t size_bytes) { return {data, DataType::uint8, Shape{size_bytes}}; }
MutableRegion room_at(void* data, std::size_t size_bytes) { return {data, DataType::uint8, Shape{size_bytes}}; }

void fill(std::span<std::byte> bytes, unsigned seed) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
}

/// Two ranks, each with devices of its own.
class DeviceMemory : public testing::Test {
 protected:
  DeviceMemory() {
    job.surroundings = [this](int rank, engine::Environment& environment) { environment.devices = of(rank); };
  }
  [[nodiscard]] std::shared_ptr<ModelDevices> of(int rank) const { return devices[static_cast<std::size_t>(rank)]; }

  std::vector<std::shared_ptr<ModelDevices>> devices{std::make_shared<ModelDevices>(),
                                                     std::make_shared<ModelDevices>()};
  SimulatedJob job{2};
};

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

// Else checkpoints would seem expensive to schedule.overhead, and be too few.
TEST_F(DeviceMemory, StepsThatAGpuHasYetToDoAreNoCostOfTheCheckpoint) {
  const std::vector<std::shared_ptr<FakeClock>> clocks{std::make_shared<FakeClock>(), std::make_shared<FakeClock>()};
  job.surroundings = [&](int rank, engine::Environment& environment) {
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

/// Commits of one field on each rank's device, which change from one to the next; what the newest restores is right.
/// How much of them went straight to the stores, commit by commit, on rank 0.
std::vector<std::size_t> committed(SimulatedJob& job, const std::vector<std::shared_ptr<ModelDevices>>& devices,
                                   const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> straight;
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *devices[static_cast<std::size_t>(scope.rank)];
    Engine engine = scope.make_engine();
    int step = 0;
    for (const std::size_t size : sizes) {
      const ModelDevices::Array array(own, 0, size);
      fill(array.contents(), static_cast<unsigned>(++step));
      const std::vector<std::byte> saved(array.contents().begin(), array.contents().end());
      const std::size_t before = own.copied_directly();
      engine.create(Tag(std::to_string(step)));
      EXPECT_TRUE(engine.save("field", bytes_at(array.address(), size)));
      std::ranges::fill(array.contents(), std::byte{0});
      engine.commit();
      if (scope.rank == 0) straight.push_back(own.copied_directly() - before);
      EXPECT_TRUE(engine.open());
      EXPECT_TRUE(engine.load("field", room_at(array.address(), size)));
      EXPECT_TRUE(std::ranges::equal(array.contents(), saved)) << "step " << step;
      engine.close();
    }
    engine.finalize();
    EXPECT_EQ(own.registered_bytes(), 0U) << "the application may reset its GPU now";
  }));
  return straight;
}

// Where it is in memory and was written before; a file that grows is mapped anew, and goes by buffers once.
TEST_F(DeviceMemory, GoesStraightToTheStore) {
  constexpr std::size_t kSize = 5 * kMiB + 1;
  const auto straight =
      committed(job, devices, {kSize, kSize, kSize, kSize, 2 * kSize, 2 * kSize, 2 * kSize, 2 * kSize});
  ASSERT_EQ(straight.size(), 8U);
  EXPECT_EQ(straight[0], 0U) << "nothing is known of it, and its storage is new";
  EXPECT_EQ(straight[3], kSize);
  EXPECT_EQ(straight[4], 0U);
  EXPECT_EQ(straight[7], 2 * kSize);
}

TEST_F(DeviceMemory, GoesByBuffersWhereThatIsWanted) {
  job.options.device.direct = false;
  EXPECT_EQ(committed(job, devices, {kMiB, kMiB, kMiB, kMiB}), std::vector<std::size_t>(4, 0));
}

TEST_F(DeviceMemory, GoesByBuffersIfTheStoreIsNotInMemory) {
  SimulatedJob on_disk{2, SimulatedJob::block_disk()};
  on_disk.surroundings = job.surroundings;
  EXPECT_EQ(committed(on_disk, devices, {kMiB, kMiB, kMiB, kMiB}), std::vector<std::size_t>(4, 0));
}

TEST_F(DeviceMemory, GoesByBuffersWhereTheStoreCannotBeRegistered) {
  for (const auto& one : devices) one->fail("register", 1, ErrorCode::no_space);
  EXPECT_EQ(committed(job, devices, {kMiB, kMiB, kMiB, kMiB}), std::vector<std::size_t>(4, 0));
  EXPECT_TRUE(job.logged("GPU memory is saved by way of pinned buffers: "));
}

/// Commits "a" to "d" of one field, the fourth of which goes straight to the store and fails on rank 1; then "e".
TEST_F(DeviceMemory, AFaultOnTheStraightWayIsTheSameOnAllRanks) {
  constexpr std::size_t kSize = 33 * kMiB;  // three pieces
  for (const std::string what : {"copy", "wait"}) {
    SimulatedJob own_job{2};
    own_job.surroundings = job.surroundings;
    OnEachRank thrown(2);
    expect_returned(own_job.start([&](RankScope& scope) {
      const ModelDevices::Array array(*of(scope.rank), 0, kSize);
      Engine engine = scope.make_engine();
      const auto commit = [&](const char* tag) {
        fill(array.contents(), static_cast<unsigned>(tag[0]));
        engine.create(tag);
        (void)engine.save("field", bytes_at(array.address(), kSize));
        engine.commit();
      };
      for (const char* tag : {"a", "b", "c"}) commit(tag);
      EXPECT_GT(of(scope.rank)->registered_bytes(), kSize);
      if (scope.rank == 1) of(1)->fail(what, 3, ErrorCode::invalid_argument);
      thrown.put(scope.rank, failure_of([&] { commit("d"); }));
      for (const char* tag : {"c", "e"}) {
        if (tag[0] == 'e') commit(tag);
        std::vector<std::byte> wanted(kSize);
        fill(wanted, static_cast<unsigned>(tag[0]));
        EXPECT_EQ(engine.open(), tag);
        EXPECT_TRUE(engine.load("field", room_at(array.address(), kSize)));
        EXPECT_TRUE(std::ranges::equal(array.contents(), wanted)) << tag;
        engine.close();
      }
    }));
    const auto failure = thrown.same();
    ASSERT_TRUE(failure) << what;
    EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_NE(failure->message.find("region 'field'"), std::string::npos) << failure->message;
  }
}

TEST_F(DeviceMemory, ADeviceThatIsLostWhileItIsRegisteredEndsTheEngineOnAllRanks) {
  OnEachRank thrown(2);
  of(1)->fail("register", 1, ErrorCode::device_failed);
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 0, kMiB);
    Engine engine = scope.make_engine();
    int committed = 0;
    thrown.put(scope.rank, failure_of([&] {
                 for (; committed < 4; ++committed) {
                   engine.create(Tag(std::to_string(committed)));
                   (void)engine.save("field", bytes_at(array.address(), kMiB));
                   engine.commit();
                 }
               }));
    EXPECT_GE(committed, 1);
    EXPECT_EQ(code_of([&] { engine.create("b"); }), ErrorCode::bad_state);
    EXPECT_EQ(engine.level(Tag(std::to_string(committed - 1))), Level::local);
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed);
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
}  // namespace kedge::faults
