// Checkpoints from the memory of a real GPU come back, in the order of streams, whatever copies them. Where there is
// none the program says so and exits with 77.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "gpu/gpu.hpp"
#include "harness/engine_checks.hpp"
#include "harness/real_run.hpp"
#include "harness/simulated_nodes.hpp"
#include "kedge/kedge.hpp"
#include "kedge/testing/in_process_job.hpp"
#include "kedge/transport.hpp"

namespace kedge::gpu::gpu_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

std::unique_ptr<Gpu>& the_gpu() {
  static std::unique_ptr<Gpu> one;
  return one;
}

Region bytes_at(const void* data, std::size_t size_bytes) { return {data, DataType::uint8, Shape{size_bytes}}; }
MutableRegion room_at(void* data, std::size_t size_bytes) { return {data, DataType::uint8, Shape{size_bytes}}; }
std::byte* behind(const Array& array, std::size_t offset) { return static_cast<std::byte*>(array.address()) + offset; }

class OnGpu : public testing::Test {
 protected:
  OnGpu() : gpu(*the_gpu()) { gpu.use(); }
  /// What a checkpoint has of this region.
  std::vector<std::byte> loaded(std::size_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    engine.open();
    EXPECT_TRUE(engine.load("field", room_at(bytes.data(), size_bytes)));
    engine.close();
    return bytes;
  }
  void save(const Region& region) {
    engine.create("t");
    const Status status = engine.save("field", region);
    EXPECT_TRUE(status) << to_string(status.failure());
    engine.commit();
  }

  const Gpu& gpu;
  faults::RealRun run{"gpu"};
  Engine engine{single_process(), run.options};
};

TEST_F(OnGpu, SavesAndLoadsAtEachSizeAndPlace) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1001}, 5 * kMiB + 3, 16 * kMiB, 70 * kMiB + 1}) {
    for (const std::size_t offset : {0U, 1U}) {
      const Array array(gpu, size + 8);
      const auto saved = noise(size, static_cast<std::uint32_t>(size + offset));
      gpu.upload(array.at + offset, saved.data(), size);
      save(bytes_at(behind(array, offset), size));
      EXPECT_TRUE(loaded(size) == saved) << size << " from " << offset;
      const Array target(gpu, size + 8);
      gpu.fill(target.at, 0xee, size + 8, nullptr);
      gpu.synchronize();
      engine.open();
      EXPECT_TRUE(engine.load("field", room_at(behind(target, offset), size)));
      engine.close();
      const auto found = target.contents();
      EXPECT_EQ(std::memcmp(found.data() + offset, saved.data(), size), 0);
      EXPECT_EQ(found[offset + size], std::byte{0xee}) << "written beyond its end";
      if (offset != 0) {
        EXPECT_EQ(found[0], std::byte{0xee});
      }
    }
  }
}

TEST_F(OnGpu, IsSavedAfterWhatWasLaunchedBefore) {
  const std::size_t size = 64 * kMiB;
  const Array array(gpu, size);
  CUstream stream = gpu.make_stream();
  for (const bool names_stream : {true, false}) {
    for (unsigned char value = 1; value <= 100; ++value) gpu.fill(array.at, value, size, stream);
    Region region = bytes_at(array.address(), size);
    if (names_stream) region.stream = DeviceStream{stream};
    save(region);
    gpu.fill(array.at, 0, size, stream);
    gpu.wait(stream);
    const auto found = loaded(size);
    EXPECT_TRUE(std::ranges::all_of(found, [](std::byte byte) { return byte == std::byte{100}; })) << names_stream;
  }
}

// What the application does to its memory once save has returned is not in it, however late it gets to the store.
TEST_F(OnGpu, IsCopiedOnTheGpuFirstAndSealedInTheBackground) {
  const faults::RealRun own("gpu-snapshot");
  Options options = own.options;
  options.device.snapshot = true;
  options.pipeline.mode = PipelineMode::background;
  Engine own_engine(single_process(), options);
  const std::size_t size = 20 * kMiB + 1;
  const Array array(gpu, size);
  CUstream stream = gpu.make_stream();
  Region region = bytes_at(array.address(), size);
  region.stream = DeviceStream{stream};
  for (unsigned char value = 1; value <= 5; ++value) {
    const Tag tag = std::to_string(value);
    own_engine.pause();
    gpu.fill(array.at, value, size, stream);
    own_engine.create(tag);
    EXPECT_TRUE(own_engine.save("field", region));
    gpu.fill(array.at, 0, size, stream);
    own_engine.commit();
    EXPECT_EQ(own_engine.level(tag) == Level::snapshot, value > 1);
    own_engine.resume();
    own_engine.wait(tag, Level::local);
    std::vector<std::byte> found(size);
    EXPECT_TRUE(own_engine.open());
    EXPECT_TRUE(own_engine.load("field", room_at(found.data(), size)));
    own_engine.close();
    EXPECT_TRUE(std::ranges::all_of(found, [&](std::byte byte) { return byte == std::byte{value}; })) << tag;
  }
}

TEST_F(OnGpu, IsLoadedAfterWhatWasLaunchedBefore) {
  const std::size_t size = 64 * kMiB;
  const Array array(gpu, size);
  const auto saved = noise(size, 5);
  save(bytes_at(saved.data(), size));
  CUstream stream = gpu.make_stream();
  for (int i = 0; i < 100; ++i) gpu.fill(array.at, 1, size, stream);
  engine.open();
  MutableRegion target = room_at(array.address(), size);
  target.stream = DeviceStream{stream};
  EXPECT_TRUE(engine.load("field", target));
  engine.close();
  gpu.synchronize();
  EXPECT_TRUE(array.contents() == saved);
}

TEST_F(OnGpu, FromAThreadThatNeverUsedTheGpuAndWithoutChangingAContext) {
  const Array array(gpu, kMiB);
  const auto saved = noise(kMiB, 6);
  gpu.upload(array.at, saved.data(), kMiB);
  const CUcontext before = gpu.current();
  engine.create("t");
  std::thread([&] {
    EXPECT_TRUE(engine.save("field", bytes_at(array.address(), kMiB)));
    EXPECT_EQ(gpu.current(), nullptr);
  }).join();
  EXPECT_TRUE(engine.save("again", bytes_at(array.address(), kMiB)));
  engine.commit();
  EXPECT_EQ(gpu.current(), before);
  EXPECT_TRUE(loaded(kMiB) == saved);
}

TEST_F(OnGpu, FromSeveralThreadsAtOnce) {
  const Array array(gpu, 32 * kMiB);
  const auto saved = noise(32 * kMiB, 7);
  gpu.upload(array.at, saved.data(), saved.size());
  engine.create("t");
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        EXPECT_TRUE(engine.save("part" + std::to_string(i), bytes_at(behind(array, i * 8 * kMiB), 8 * kMiB)));
      });
    }
  }
  engine.commit();
  engine.open();
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<std::byte> part(8 * kMiB);
    EXPECT_TRUE(engine.load("part" + std::to_string(i), room_at(part.data(), part.size())));
    EXPECT_EQ(std::memcmp(part.data(), saved.data() + i * 8 * kMiB, part.size()), 0);
  }
  engine.close();
}

TEST_F(OnGpu, MemoryOfAPool) {
  CUstream stream = gpu.make_stream();
  const CUdeviceptr at = gpu.allocate_of_pool(kMiB, stream);
  if (at == 0) GTEST_SKIP() << "this driver has no pools";
  gpu.fill(at, 9, kMiB, stream);
  Region region = bytes_at(reinterpret_cast<const void*>(at), kMiB);  // NOLINT(*-reinterpret-cast)
  region.stream = DeviceStream{stream};
  save(region);
  const auto found = loaded(kMiB);
  EXPECT_TRUE(std::ranges::all_of(found, [](std::byte byte) { return byte == std::byte{9}; }));
  gpu.free(at);
}

TEST_F(OnGpu, PinnedMemoryIsTheHosts) {
  std::byte* pinned = gpu.allocate_pinned(kMiB);
  std::fill(pinned, pinned + kMiB, std::byte{4});
  save(bytes_at(pinned, kMiB));
  const auto found = loaded(kMiB);
  EXPECT_TRUE(std::ranges::all_of(found, [](std::byte byte) { return byte == std::byte{4}; }));
  gpu.free_pinned(pinned);
}

TEST_F(OnGpu, ARegionThatReachesBeyondItsMemoryIsRefusedAndTheNextIsNot) {
  const std::size_t size = 64 * kMiB;
  const Array array(gpu, size);
  engine.create("t");
  const Status status = engine.save("field", bytes_at(array.address(), 4 * size));
  EXPECT_FALSE(status);
  EXPECT_EQ(faults::failure_of([&] { engine.commit(); }).has_value(), true);
  save(bytes_at(array.address(), size));
}

TEST(OnGpuJob, RanksSaveAndRecoverAfterALostNode) {
  const Gpu& gpu = *the_gpu();
  const faults::RealRun run("gpu-job");
  Options options = run.options;
  options.store.path = run.directory + "/store/{node}";
  const faults::SimulatedNodes nodes(1);
  options.redundancy.scheme = Scheme::xor_;
  kedge::testing::InProcessJob job(3, options);
  const std::size_t size = 20 * kMiB;
  const auto body = [&](bool restarts) {
    return [&gpu, size, restarts](Engine& engine, Communicator& communicator) {
      gpu.use();
      const Array array(gpu, size);
      const auto saved = noise(size, static_cast<std::uint32_t>(communicator.rank()));
      State state;
      state.add("field", room_at(array.address(), size));
      if (!restarts) {
        gpu.upload(array.at, saved.data(), size);
        engine.checkpoint("a", state);
        engine.wait("a", Level::protected_);
      } else {
        EXPECT_EQ(engine.restore(state), "a");
        EXPECT_TRUE(array.contents() == saved);
      }
      engine.finalize();
    };
  };
  for (const auto& outcome : job.start(body(false)))
    EXPECT_TRUE(outcome.returned()) << faults::text_of(outcome.failure);
  std::filesystem::remove_all(run.directory + "/store/node1");
  for (const auto& outcome : job.start(body(true))) EXPECT_TRUE(outcome.returned()) << faults::text_of(outcome.failure);
}

/// Straight copies, whose checksums the GPU computes after the first: what is loaded is checked by the host.
TEST_F(OnGpu, ComputesTheChecksumsOfStraightCopies) {
  const std::filesystem::path store = "/dev/shm/kedge-gpu-test-" + std::to_string(::getpid());
  std::vector<std::string> lines;
  {
    Options options = run.options;
    options.run = "straight";
    options.store.path = store;
    options.log.level = LogLevel::info;
    options.log.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
    Engine straight(single_process(), options);
    const std::size_t size = 20 * kMiB + 5;
    const Array array(gpu, size);
    for (std::uint32_t step = 0; step < 6; ++step) {
      const auto saved = noise(size, step);
      gpu.upload(array.at, saved.data(), size);
      straight.create("t");
      EXPECT_TRUE(straight.save("field", bytes_at(array.address(), size)));
      straight.commit();
      std::vector<std::byte> bytes(size);
      straight.open();
      EXPECT_TRUE(straight.load("field", room_at(bytes.data(), size)));
      straight.close();
      EXPECT_TRUE(bytes == saved) << step;
    }
    straight.finalize();
  }
  std::filesystem::remove_all(store);
  const auto of_checksums = [](const std::string& line) { return line.find("checksums of GPU") != line.npos; };
  ASSERT_EQ(std::ranges::count_if(lines, of_checksums), 1);
  std::printf("%s\n", std::ranges::find_if(lines, of_checksums)->c_str());
}

/// In a process of its own: nothing works on the GPU after it.
TEST(OnGpuLost, AfterAnIllegalAddressTheEngineEndsAndWhatWasCommittedStays) {
  const Gpu& gpu = *the_gpu();
  if (!gpu.has_kernels()) GTEST_SKIP() << "this driver runs no kernels";
  const faults::RealRun run("gpu-lost");
  std::optional<Engine> engine(std::in_place, single_process(), run.options);
  int step = 7;
  State state;
  state.add("step", step);
  engine->checkpoint("before", state);
  const Array array(gpu, kMiB);
  gpu.break_device();
  engine->create("after");
  const Status status = engine->save("field", bytes_at(array.address(), kMiB));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.failure().code, ErrorCode::device_failed) << to_string(status.failure());
  std::printf("%s\n", to_string(status.failure()).c_str());
  EXPECT_EQ(faults::code_of([&] { engine->commit(); }), ErrorCode::device_failed);
  EXPECT_EQ(faults::code_of([&] { engine->create("next"); }), ErrorCode::bad_state);
}

}  // namespace
}  // namespace kedge::gpu::gpu_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string why;
  kedge::gpu::gpu_test::the_gpu() = kedge::gpu::Gpu::first(why);
  if (!kedge::gpu::gpu_test::the_gpu()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  std::printf("GPU: %s, driver of CUDA %d\n", kedge::gpu::gpu_test::the_gpu()->name().c_str(),
              kedge::gpu::gpu_test::the_gpu()->driver_version());
  return RUN_ALL_TESTS();
}
