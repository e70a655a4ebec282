// Devices of CUDA, over a fake driver: how Kedge finds it where the application has loaded it, copies in the order of
// streams, and how it maps the driver's errors.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/attempt.hpp"
#include "base/loaded_libraries.hpp"
#include "device/copies.hpp"
#include "device/loaded_driver.hpp"
#include "device/staging.hpp"
#include "harness/real_run.hpp"
#include "kedge/kedge.hpp"
#include "kedge/transport.hpp"
#include "unit/device/cuda_fixture.hpp"

namespace kedge::device::cuda_test {
namespace {

TEST(CudaFirst, NothingIsOfADeviceWhereNoDriverIsLoaded) {
  int value = 0;
  if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << "a test before this one loaded it";
  EXPECT_EQ(system_devices()->location_of(&value), MemoryLocation{});
}

/// A driver that is loaded later is found.
TEST(CudaFirst, TheDriverIsLookedForWhenSomethingWasLoaded) {
  if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << "a test before this one loaded it";
  LoadedDriver driver;
  EXPECT_EQ(driver.handle(), nullptr);
  const std::uint64_t loads = library_load_count();
  EXPECT_EQ(driver.handle(), nullptr);
  EXPECT_EQ(library_load_count(), loads);
  (void)fake();
  EXPECT_GT(library_load_count(), loads);
  EXPECT_NE(driver.handle(), nullptr);
}

TEST(CudaFirst, NothingIsOfADeviceBeforeTheDriverIsInitialized) {
  int value = 0;
  (void)fake();
  EXPECT_EQ(system_devices()->location_of(&value), MemoryLocation{});
}

#if KEDGE_HAS_CUDA

TEST_F(Cuda, KnowsWhereMemoryIs) {
  const auto devices = system_devices();
  std::byte* first = allocate(4096, 0);
  std::byte* pooled = allocate(4096, 3, true);
  int value = 0;
  EXPECT_EQ(devices->location_of(&value).kind, MemoryLocation::Kind::host);
  EXPECT_EQ(devices->location_of(nullptr).kind, MemoryLocation::Kind::host);
  EXPECT_EQ(devices->location_of(first + 4095).kind, MemoryLocation::Kind::device);
  EXPECT_EQ(devices->location_of(first).ordinal, 0);
  EXPECT_EQ(devices->location_of(pooled).ordinal, 3);
  EXPECT_NE(devices->location_of(pooled).context, nullptr) << "the device's primary one";
}

TEST_F(Cuda, AnsweringThatItKnowsNoDeviceMakesAPointerTheHosts) {
  const auto devices = system_devices();
  int value = 0;
  for (const int result : {1, 4, 34, 100, 101, 201}) {
    fake().fail("cuPointerGetAttributes", 1, result, false);
    EXPECT_EQ(devices->location_of(&value), MemoryLocation{}) << result;
  }
}

TEST_F(Cuda, AStreamThatIsGivenForHostMemoryIsWaitedFor) {
  const auto devices = system_devices();
  int ran = 0;
  fake().launch(
      nullptr, [](void* flag) { *static_cast<int*>(flag) = 1; }, &ran);
  devices->synchronize({}, DeviceStream{nullptr});
  EXPECT_EQ(ran, 1);
}

TEST_F(Cuda, CopiesBothWaysInTheContextOfTheMemory) {
  Staging staging(system_devices(), {3, 1024});
  for (const bool of_pool : {false, true}) {
    std::byte* first = allocate(5000, 0, of_pool);
    std::byte* second = allocate(5000, 1, of_pool);
    EXPECT_EQ(read(staging, first, 5000), contents(first, 5000));
    EXPECT_EQ(read(staging, second, 5000), contents(second, 5000));
    const std::vector<std::byte> bytes(5000, std::byte{9});
    staging.write({second, 5000, staging.devices().location_of(second)},
                  [&](std::uint64_t offset, std::span<std::byte> piece) {
                    std::memcpy(piece.data(), bytes.data() + offset, piece.size());
                  });
    EXPECT_EQ(contents(second, 5000), bytes);
  }
}

TEST_F(Cuda, CopiesWithinAGpuToMemoryOfItsOwn) {
  const auto devices = system_devices();
  const auto copies = std::make_shared<CopyPool>(devices);
  Staging staging(devices, {3, 1024});
  for (const int ordinal : {0, 1}) {
    std::byte* address = allocate(5000, ordinal);
    const auto saved = contents(address, 5000);
    fake().capture(true);  // the application may be at it while the worker frees
    {
      const auto copy = copies->make_copy({address, 5000, devices->location_of(address)});
      ASSERT_TRUE(copy);
      std::memset(fake().contents(address), 0, 5000);
      EXPECT_EQ(devices->location_of(copy->span().data).ordinal, ordinal);
      EXPECT_EQ(read(staging, copy->span().data, 5000), saved);
    }
    copies->release();
    fake().capture(false);
    fake().fail("cuMemAlloc", 1, 2, false);
    EXPECT_FALSE(copies->make_copy({address, 5000, devices->location_of(address)})) << "out of memory";
    for (const auto& [function, words] : {std::pair("cuMemAlloc", "allocate 5000 bytes on GPU "),
                                          std::pair("cuMemcpyDtoDAsync", "copy 5000 bytes within GPU ")}) {
      fake().fail(function, 1, 1, false);
      const auto failure = attempt([&] { (void)copies->make_copy({address, 5000, devices->location_of(address)}); });
      ASSERT_TRUE(failure) << function;
      EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
      EXPECT_NE(failure->message.find(words), std::string::npos) << failure->message;
    }
    copies->release();
  }
}

TEST_F(Cuda, NothingIsLeftBehind) {
  {
    Staging staging(system_devices(), {3, 1024});
    (void)read(staging, allocate(5000), 5000);
    EXPECT_EQ(fake().streams(), 3);
    EXPECT_EQ(fake().pinned(), 3);
  }
  EXPECT_EQ(fake().streams(), 0);
  EXPECT_EQ(fake().pinned(), 0);
}

TEST_F(Cuda, WaitsForAStreamOrForAll) {
  const auto devices = system_devices();
  const MemoryLocation location = devices->location_of(allocate(64));
  int ran = 0;
  int other = 0;
  fake().launch(
      nullptr, [](void* flag) { *static_cast<int*>(flag) = 1; }, &ran);
  fake().launch(
      reinterpret_cast<void*>(std::uintptr_t{2}), [](void* flag) { *static_cast<int*>(flag) = 1; }, &other);
  devices->synchronize(location, DeviceStream{nullptr});
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(other, 0);
  devices->synchronize(location, std::nullopt);
  EXPECT_EQ(other, 1);
  int no_stream = 0;
  const auto failure = attempt([&] { devices->synchronize(location, DeviceStream{&no_stream}); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
}

struct Case {
  const char* function;
  int result;
  ErrorCode code;
  const char* words;
};

class CudaFails : public Cuda, public testing::WithParamInterface<Case> {};

TEST_P(CudaFails, AndTheCodeSaysWhatIsLost) {
  const Case& one = GetParam();
  Staging staging(system_devices(), {3, 1024});
  std::byte* address = allocate(8000);
  const MemoryLocation location = staging.devices().location_of(address);
  fake().fail(one.function, 1, one.result, one.code == ErrorCode::device_failed);
  const auto failure = attempt([&] {
    staging.devices().synchronize(location, std::nullopt);
    (void)read(staging, address, 8000);
  });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, one.code) << failure->message;
  EXPECT_NE(failure->message.find(one.words), std::string::npos) << failure->message;
  const auto again = attempt([&] { EXPECT_EQ(read(staging, address, 8000), contents(address, 8000)); });
  EXPECT_EQ(again.has_value(), one.code == ErrorCode::device_failed);
}

INSTANTIATE_TEST_SUITE_P(
    Results, CudaFails,
    testing::Values(Case{"cuCtxPushCurrent", 201, ErrorCode::invalid_argument, "CUDA_ERROR_INVALID_CONTEXT"},
                    Case{"cuCtxSynchronize", 700, ErrorCode::device_failed, "an illegal memory access"},
                    Case{"cuStreamCreate", 2, ErrorCode::no_space, "create a stream on GPU 0"},
                    Case{"cuMemHostAlloc", 2, ErrorCode::no_space, "pin 1024 bytes of host memory"},
                    Case{"cuMemcpyDtoHAsync", 1, ErrorCode::invalid_argument, "copy 1024 bytes from GPU 0"},
                    Case{"cuMemcpyDtoHAsync", 999, ErrorCode::device_failed, "an unknown error"},
                    Case{"cuMemcpyDtoHAsync", 906, ErrorCode::bad_state, "during stream capture"},
                    Case{"cuMemcpyDtoHAsync", 801, ErrorCode::io, "look the error up"},
                    Case{"cuStreamSynchronize", 700, ErrorCode::device_failed, "end the job and start it again"},
                    Case{"cuPointerGetAttributes", 700, ErrorCode::device_failed, "query the pointer's attributes"}),
    [](const auto& one) { return std::string(one.param.function) + std::to_string(one.param.result); });

TEST_F(Cuda, AnEngineSavesAndLoadsFromAThreadThatNeverUsedCuda) {
  const faults::RealRun run("cuda");
  Engine engine(single_process(), run.options);
  std::byte* address = allocate(100'000, 1);
  const auto saved = contents(address, 100'000);
  const Region region{address, DataType::uint8, Shape{100'000}};
  engine.create("a");
  std::thread([&] { EXPECT_TRUE(engine.save("field", region)); }).join();
  engine.commit();
  std::memset(fake().contents(address), 0, 100'000);
  ASSERT_TRUE(engine.open());
  EXPECT_TRUE(engine.load("field", {address, DataType::uint8, Shape{100'000}}));
  engine.close();
  EXPECT_EQ(contents(address, 100'000), saved);
  engine.finalize();
}

/// Commits from a GPU to a store in memory; how many of its files were registered at the end.
int registered_after_commits(std::byte* address, std::size_t size_bytes) {
  faults::RealRun run("cuda-direct");
  run.options.store.path = "/dev/shm/kedge-cuda-direct-" + std::to_string(::getpid());
  const struct Remove {
    std::string path;
    ~Remove() { std::filesystem::remove_all(path); }
  } remove{run.options.store.path};
  std::filesystem::create_directories(remove.path);
  Engine engine(single_process(), run.options);
  for (int step = 0; step < 8; ++step) {
    fake().contents(address)[7] = static_cast<std::byte>(step);
    engine.create("a");
    EXPECT_TRUE(engine.save("field", {address, DataType::uint8, Shape{size_bytes}}));
    fake().contents(address)[7] = std::byte{99};
    engine.commit();
    std::vector<std::byte> loaded(size_bytes);
    EXPECT_TRUE(engine.open());
    EXPECT_TRUE(engine.load("field", {loaded.data(), DataType::uint8, Shape{size_bytes}}));
    engine.close();
    EXPECT_EQ(loaded[7], static_cast<std::byte>(step));
  }
  const int registered = fake().registered();
  engine.finalize();
  EXPECT_EQ(fake().registered(), 0);
  EXPECT_EQ(fake().pinned(), 0);
  return registered;
}

TEST_F(Cuda, AStoreInMemoryIsRegistered) {
  constexpr std::size_t kSize = std::size_t{5} << 20U;
  std::byte* address = allocate(kSize);
  EXPECT_GE(registered_after_commits(address, kSize), 1);
}

/// The worker frees and unregisters when it does, whatever the application does then.
TEST_F(Cuda, WhatIsAllocatedAndFreedLeavesCapturesAlone) {
  std::byte* address = allocate(8000);
  std::vector<std::byte> memory(4096);
  const auto access = std::make_shared<MemoryRegistration>();
  fake().capture(true);
  {
    Staging staging(system_devices(), {3, 1024}, [](const Failure& why) { ADD_FAILURE() << why.message; });
    const MemoryLocation location = staging.devices().location_of(address);
    EXPECT_TRUE(staging.can_access(location, {memory, access}));
    EXPECT_EQ(read(staging, address, 8000), contents(address, 8000));
    access->end();
    EXPECT_EQ(fake().registered(), 0);
  }
  EXPECT_EQ(fake().pinned(), 0);
}

TEST_F(Cuda, AStoreThatCannotBeRegisteredIsWrittenByBuffers) {
  constexpr std::size_t kSize = std::size_t{5} << 20U;
  std::byte* address = allocate(kSize);
  for (const int result : {2, 712, 801}) {
    fake().fail("cuMemHostRegister", 1, result, false);
    EXPECT_EQ(registered_after_commits(address, kSize), 0) << result;
  }
  fake().fail("cuMemHostRegister", 1, 201, false);  // a context that is gone says nothing of the store
  EXPECT_GE(registered_after_commits(address, kSize), 1);
}

#else

TEST_F(Cuda, MemoryOfAGpuIsRefusedInWords) {
  const faults::RealRun run("no-cuda");
  Engine engine(single_process(), run.options);
  std::byte* address = allocate(4096);
  engine.create("a");
  const Status status = engine.save("field", {address, DataType::uint8, Shape{4096}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.failure().code, ErrorCode::invalid_argument);
  EXPECT_NE(status.failure().message.find("region 'field': it is GPU memory"), std::string::npos)
      << status.failure().message;
  engine.abandon();
  int value = 1;
  State state;
  state.add("value", value);
  engine.checkpoint("b", state);
  engine.finalize();
}

#endif

}  // namespace
}  // namespace kedge::device::cuda_test
