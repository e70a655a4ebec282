// Kernels as a driver loads and runs them, over a fake one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checksum/crc32c.hpp"
#include "device/kernels/image.hpp"
#include "device/staging.hpp"
#include "unit/device/cuda_fixture.hpp"

#if KEDGE_HAS_CUDA

namespace kedge::device::cuda_kernels_test {
namespace {

/// A transfer straight to memory, and whether the GPU computed its checksums, after one to choose by.
class KernelsOfCuda : public Cuda {
 protected:
  void SetUp() override {
    if (kernel_image() == nullptr) GTEST_SKIP() << "this build has no kernels: there is no nvcc";
  }
  static constexpr std::size_t kSize = (std::size_t{1} << 20U) + 3;
  static constexpr std::size_t kBlock = std::size_t{512} << 10U;

  /// Of a transfer, the second one: the first is for the measurement, in which the host is slow.
  bool computes(Staging& staging) {
    transfer(staging, std::chrono::milliseconds(200));
    of_host = 0;
    transfer(staging, {});
    access->end();
    return of_host == 0;
  }
  void transfer(Staging& staging, std::chrono::milliseconds delay) {
    const Span from{address, kSize, staging.devices().location_of(address)};
    EXPECT_TRUE(staging.can_access(from.location, {memory, access}));
    const auto found = staging.read_into(from, memory, kBlock, [&](std::uint64_t offset, std::uint64_t length) {
      of_host += length;
      std::this_thread::sleep_for(delay);
      return checksums_of(std::span<const std::byte>(memory).subspan(offset, length));
    });
    EXPECT_EQ(memory, contents(address, kSize));
    EXPECT_EQ(found, checksums_of(memory));
  }
  static std::vector<std::uint32_t> checksums_of(std::span<const std::byte> bytes) {
    std::vector<std::uint32_t> all;
    for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
      all.push_back(crc32c(bytes.subspan(at, std::min(kBlock, bytes.size() - at))));
    }
    return all;
  }
  std::uint64_t of_host = 0;
  std::byte* address = allocate(kSize);
  std::vector<std::byte> memory = std::vector<std::byte>(kSize);
  std::shared_ptr<MemoryRegistration> access = std::make_shared<MemoryRegistration>();
  std::vector<std::string> told;
  ChecksumSelector::LogLine tell = [this](LogLevel, std::string_view line) { told.emplace_back(line); };
  StagingSize size{3, 2 * kBlock, kBlock};
};

TEST_F(KernelsOfCuda, AreTheOnesThatTheLibraryCarries) {
  fake().capture(true);
  {
    Staging staging(
        system_devices(), size, [](const Failure&) {}, tell);
    EXPECT_TRUE(computes(staging)) << (told.empty() ? "" : told[0]);
    EXPECT_EQ(fake().modules(), 1);
  }
  EXPECT_EQ(fake().modules(), 0);
  EXPECT_EQ(fake().pinned(), 0);
  EXPECT_EQ(fake().pushed(), 0);
}

/// For an architecture that was not built for, say.
TEST_F(KernelsOfCuda, ThatCannotBeLoadedOrRunLeaveTheHostToDoIt) {
  for (const std::string function : {"cuModuleLoadData", "cuLaunchKernel"}) {
    told.clear();
    fake().fail(function.c_str(), 1, 209, false);
    Staging staging(
        system_devices(), size, [](const Failure&) {}, tell);
    EXPECT_FALSE(computes(staging));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_NE(told[0].find("are computed by the host: cannot "), std::string::npos) << told[0];
  }
}

}  // namespace
}  // namespace kedge::device::cuda_kernels_test

#endif
