// Regions in the memory of a GPU that are copied straight into the store's files, in the order of their streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/device_fixture.hpp"

namespace kedge::faults::device_direct_test {
namespace {

class DeviceDirect : public DeviceMemory {};

const std::vector<std::size_t> kSteady(8, kMiB);

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

// Where it is in memory and has kept its size for a while.
TEST_F(DeviceDirect, GoesStraightToTheStore) {
  constexpr std::size_t kSize = 5 * kMiB + 1;
  std::vector<std::size_t> sizes(8, kSize);
  sizes.insert(sizes.end(), 8, 2 * kSize);
  const auto straight = committed(job, devices, sizes);
  ASSERT_EQ(straight.size(), 16U);
  EXPECT_EQ(straight[0], 0U) << "nothing is known of it, and its storage is new";
  EXPECT_EQ(straight[7], kSize);
  EXPECT_EQ(straight[8], 0U) << "it has grown";
  EXPECT_EQ(straight[15], 2 * kSize);
}

// It would be registered for one use.
TEST_F(DeviceDirect, GoesByBuffersWhereSizesChangeAllTheTime) {
  for (const auto& sizes : {std::vector<std::size_t>{kMiB, 2 * kMiB, kMiB, 2 * kMiB, kMiB, 2 * kMiB, kMiB, 2 * kMiB},
                            std::vector<std::size_t>{8 * kMiB, 7 * kMiB, 6 * kMiB, 5 * kMiB, 4 * kMiB, 3 * kMiB},
                            std::vector<std::size_t>{kMiB, 2 * kMiB, 3 * kMiB, 4 * kMiB, 5 * kMiB, 6 * kMiB}}) {
    SimulatedJob own{2};
    own.surroundings = job.surroundings;
    EXPECT_EQ(committed(own, devices, sizes), std::vector<std::size_t>(sizes.size(), 0));
  }
}

// A container is not page-locked for a small part of it.
TEST_F(DeviceDirect, GoesByBuffersWhereMostOfACheckpointIsTheHosts) {
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 0, 64);
    const std::vector<std::byte> host(kMiB);
    Engine engine = scope.make_engine();
    for (int step = 0; step < 8; ++step) {
      engine.create(Tag(std::to_string(step)));
      EXPECT_TRUE(engine.save("small", bytes_at(array.address(), 64)));
      EXPECT_TRUE(engine.save("large", bytes_at(host.data(), host.size())));
      engine.commit();
    }
    EXPECT_EQ(of(scope.rank)->registered_bytes(), 0U);
  }));
}

/// A dead engine's files stay mapped until the process ends: not page-locked.
TEST_F(DeviceDirect, IsRegisteredNoMoreWhenTheEngineIsGone) {
  enum class End : std::uint8_t { finalized, destroyed, dead };
  for (const End end : {End::finalized, End::destroyed, End::dead}) {
    SimulatedJob own{2};
    own.surroundings = job.surroundings;
    expect_returned(own.start([&](RankScope& scope) {
      const ModelDevices::Array array(*of(scope.rank), 0, kMiB);
      const auto commit = [&](Engine& engine, const char* tag) {
        engine.create(tag);
        (void)engine.save("field", bytes_at(array.address(), kMiB));
        engine.commit();
      };
      {
        Engine engine = scope.make_engine();
        for (int step = 0; step < 8; ++step) commit(engine, "a");
        EXPECT_GT(of(scope.rank)->registered_bytes(), 0U);
        if (end == End::finalized) {
          engine.finalize();
          EXPECT_EQ(of(scope.rank)->registered_bytes(), 0U);
        } else if (end == End::dead) {
          if (scope.rank == 1) of(1)->fail("copy", 1, ErrorCode::device_failed);
          EXPECT_EQ(code_of([&] { commit(engine, "b"); }), ErrorCode::device_failed);
        }
      }
      EXPECT_EQ(of(scope.rank)->registered_bytes(), 0U);
    }));
  }
}

TEST_F(DeviceDirect, GoesByBuffersWhereThatIsWanted) {
  job.options.device.path = DevicePath::buffers;
  EXPECT_EQ(committed(job, devices, kSteady), std::vector<std::size_t>(kSteady.size(), 0));
}

TEST_F(DeviceDirect, GoesByBuffersIfTheStoreIsNotInMemory) {
  SimulatedJob on_disk{2, SimulatedJob::block_disk()};
  on_disk.surroundings = job.surroundings;
  EXPECT_EQ(committed(on_disk, devices, kSteady), std::vector<std::size_t>(kSteady.size(), 0));
}

TEST_F(DeviceDirect, GoesByBuffersWhereTheStoreCannotBeRegistered) {
  for (const auto& one : devices) one->fail("register", 1, ErrorCode::no_space);
  EXPECT_EQ(committed(job, devices, kSteady), std::vector<std::size_t>(kSteady.size(), 0));
  EXPECT_TRUE(job.logged("cannot copy GPU memory straight into the node-local store; using pinned buffers instead: "));
}

/// Commits of one field until they go straight to the store; "d" fails on rank 1 then, and "e" succeeds.
TEST_F(DeviceDirect, AFaultOnTheStraightWayIsTheSameOnAllRanks) {
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
      for (const char* tag : {"a", "b", "a", "b", "a", "b", "c"}) commit(tag);
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

TEST_F(DeviceDirect, ADeviceThatIsLostWhileItIsRegisteredEndsTheEngineOnAllRanks) {
  OnEachRank thrown(2);
  of(1)->fail("register", 1, ErrorCode::device_failed);
  expect_returned(job.start([&](RankScope& scope) {
    const ModelDevices::Array array(*of(scope.rank), 0, kMiB);
    Engine engine = scope.make_engine();
    int committed = 0;
    thrown.put(scope.rank, failure_of([&] {
                 for (; committed < 8; ++committed) {
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

}  // namespace
}  // namespace kedge::faults::device_direct_test
