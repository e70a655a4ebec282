// Regions in the memory of a GPU that it writes to a store on a disk by itself, in whole pages: the same file, as
// durable; through buffers where that fails, with one line; a failed write is the same on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/device_fixture.hpp"
#include "harness/cached_files.hpp"

namespace kedge::faults::device_gds_test {
namespace {

constexpr std::size_t kSize = 9 * kMiB + 77;
constexpr std::size_t kHostSize = 3 * kMiB + 5;

class DeviceGds : public DeviceMemory {
 protected:
  DeviceGds() {
    for (const auto& one : devices) {
      one->compute_checksums();
      one->write_file = [this](int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
        cache->write_past(descriptor, offset, bytes);
      };
    }
    prepare(on_disk);
    on_disk.options.device.path = DevicePath::gds;
  }
  ~DeviceGds() override {
    EXPECT_EQ(cache->overwritten, 0U) << "what the cache had would be written over what a device wrote";
    EXPECT_EQ(cache->stale_reads, 0U) << "what a device wrote is not what is read";
    for (const auto& one : devices) EXPECT_EQ(one->direct_files(), 0U);
  }
  void prepare(SimulatedJob& any) {
    any.surroundings = [this](int rank, start::Environment& environment) {
      environment.devices = of(rank);
      environment.file_system = std::make_shared<CachedFileSystem>(environment.file_system, cache);
    };
  }
  /// Of one region on the device between two of the host, whose contents are those of the step.
  class Fields {
   public:
    Fields(ModelDevices& devices, int rank) : array_(devices, 0, kSize), host_(kHostSize), rank_(rank) {}
    void commit(Engine& engine, int step) {
      fill(step);
      engine.create(Tag(std::to_string(step)));
      (void)engine.save("before", bytes_at(host_.data(), kHostSize));
      (void)engine.save("field", bytes_at(array_.address(), kSize));
      (void)engine.save("small", bytes_at(array_.address(), 100));
      (void)engine.save("z", bytes_at(host_.data(), kHostSize));
      engine.commit();
    }
    void expect_newest(Engine& engine, int step) {
      fill(step);
      const std::vector<std::byte> wanted(array_.contents().begin(), array_.contents().end());
      const std::vector<std::byte> wanted_of_host = host_;
      std::ranges::fill(array_.contents(), std::byte{0});
      EXPECT_EQ(engine.open(), Tag(std::to_string(step)));
      EXPECT_TRUE(engine.load("field", room_at(array_.address(), kSize)));
      EXPECT_TRUE(std::ranges::equal(array_.contents(), wanted)) << "step " << step;
      for (const char* name : {"before", "z"}) {
        EXPECT_TRUE(engine.load(name, room_at(host_.data(), kHostSize)));
        EXPECT_EQ(host_, wanted_of_host) << "step " << step << ", " << name;
      }
      engine.close();
    }

   private:
    void fill(int step) {
      faults::fill(array_.contents(), static_cast<unsigned>(100 * step + rank_));
      faults::fill(host_, static_cast<unsigned>(100 * step + 50 + rank_));
    }
    ModelDevices::Array array_;
    std::vector<std::byte> host_;
    int rank_;
  };

  /// Commits 1 to `last`, each of which is right when it is opened. How much each wrote past the host, on rank 0.
  std::vector<std::size_t> commits(SimulatedJob& any, int last) {
    std::vector<std::size_t> past;
    expect_returned(any.start([&](RankScope& scope) {
      Fields fields(*of(scope.rank), scope.rank);
      Engine engine = scope.make_engine();
      for (int step = 1; step <= last; ++step) {
        const std::size_t before = of(scope.rank)->written_directly();
        fields.commit(engine, step);
        EXPECT_EQ(of(scope.rank)->direct_files(), 0U) << "a file that is sealed is not registered";
        if (scope.rank == 0) past.push_back(of(0)->written_directly() - before);
        fields.expect_newest(engine, step);
      }
      engine.finalize();
    }));
    return past;
  }
  /// What lies in the newest container of rank 0 behind its superblock, which says which commit it is.
  std::vector<std::byte> container(SimulatedJob& any) {
    std::vector<std::byte> bytes;
    (void)any.start([&](RankScope& scope) {
      if (scope.rank != 0) return;
      CachedFileSystem files(any.disk.view(0), cache);
      const auto names = container_files(any.disk, 0);
      ASSERT_FALSE(names.empty());
      const auto file = files.open(names.front(), fs::Access::read);
      bytes.resize(file->status().size_bytes - 4096);
      (void)file->read_with_crc(4096, bytes, 0);
    });
    return bytes;
  }

  std::shared_ptr<PageCache> cache = std::make_shared<PageCache>();
  SimulatedJob on_disk{2, SimulatedJob::block_disk()};
};

// After the first, by which the device's checksums are compared; also into files whose earlier pages are still dirty.
TEST_F(DeviceGds, GoesPastTheHost) {
  const auto past = commits(on_disk, 6);
  ASSERT_EQ(past.size(), 6U);
  EXPECT_EQ(past[0], 0U);
  for (std::size_t i = 1; i < past.size(); ++i) {
    EXPECT_GT(past[i], kSize - 8192) << i;
    EXPECT_LT(past[i], kSize) << i;
  }
  EXPECT_TRUE(on_disk.logged("GPU memory is written to the node-local store by GPUDirect Storage"));
  EXPECT_TRUE(on_disk.logged("device.path = gds is experimental"));
}

TEST_F(DeviceGds, TheFilesAreTheSameWithAndWithout) {
  (void)commits(on_disk, 3);
  const std::vector<std::byte> with = container(on_disk);
  cache->forget();
  SimulatedJob without{2, SimulatedJob::block_disk()};
  prepare(without);
  without.options.device.path = DevicePath::automatic;
  EXPECT_EQ(commits(without, 3), std::vector<std::size_t>(3, 0));
  EXPECT_FALSE(without.logged("GPUDirect"));
  const std::vector<std::byte> buffered = container(without);
  ASSERT_EQ(with.size(), buffered.size());
  EXPECT_TRUE(with == buffered);
}

// What the device wrote is synced before the seal, as all else is.
TEST_F(DeviceGds, SurvivesALossOfPowerIfTheStoreIsDurable) {
  on_disk.options.store.durable = true;
  const auto body = [&](bool restarts) {
    return [&, restarts](RankScope& scope) {
      Fields fields(*of(scope.rank), scope.rank);
      Engine engine = scope.make_engine();
      if (restarts) return fields.expect_newest(engine, 3);
      for (int step = 1; step <= 3; ++step) fields.commit(engine, step);
      EXPECT_GT(of(scope.rank)->written_directly(), 2 * (kSize - 8192));
    };
  };
  expect_returned(on_disk.start(body(false), Crash::power, 1));
  cache->forget();
  expect_returned(on_disk.start(body(true)));
}

TEST_F(DeviceGds, GoesByBuffersOrDirectlyIntoAStoreInMemory) {
  job.options.device.path = DevicePath::gds;
  EXPECT_EQ(commits(job, 3), std::vector<std::size_t>(3, 0));
  EXPECT_FALSE(job.logged("GPUDirect"));
}

// One rank goes by buffers from then on; nobody else hears of it.
TEST_F(DeviceGds, ARankWhoseWayFailsGoesByBuffers) {
  of(1)->fail("direct_write", 1, ErrorCode::bad_state);
  EXPECT_GT(commits(on_disk, 4)[3], 0U);
  EXPECT_EQ(of(1)->written_directly(), 0U);
}

TEST_F(DeviceGds, AFailedWriteIsTheSameOnAllRanks) {
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::no_space}) {
    SimulatedJob own{2, SimulatedJob::block_disk()};
    cache->forget();
    prepare(own);
    own.options.device.path = DevicePath::gds;
    OnEachRank thrown(2);
    expect_returned(own.start([&](RankScope& scope) {
      Fields fields(*of(scope.rank), scope.rank);
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 3; ++step) fields.commit(engine, step);
      if (scope.rank == 1) of(1)->fail("direct_write", 1, code);
      thrown.put(scope.rank, failure_of([&] { fields.commit(engine, 4); }));
      EXPECT_EQ(of(scope.rank)->direct_files(), 0U);
      fields.expect_newest(engine, 3);
      fields.commit(engine, 5);
      fields.expect_newest(engine, 5);
    }));
    const auto failure = thrown.same();
    ASSERT_TRUE(failure) << to_string(code);
    EXPECT_EQ(failure->code, code);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_TRUE(failure->path.starts_with("/nodes/")) << failure->path;
  }
}

TEST_F(DeviceGds, ADeviceThatIsLostEndsTheEngineOnAllRanks) {
  OnEachRank thrown(2);
  expect_returned(on_disk.start([&](RankScope& scope) {
    Fields fields(*of(scope.rank), scope.rank);
    {
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 3; ++step) fields.commit(engine, step);
      if (scope.rank == 1) of(1)->fail("direct_write", 1, ErrorCode::device_failed);
      thrown.put(scope.rank, failure_of([&] { fields.commit(engine, 4); }));
      EXPECT_EQ(code_of([&] { engine.create("5"); }), ErrorCode::bad_state);
      EXPECT_EQ(engine.level("3"), Level::local);
    }
    EXPECT_EQ(of(scope.rank)->direct_files(), 0U);
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed);
}

}  // namespace
}  // namespace kedge::faults::device_gds_test
