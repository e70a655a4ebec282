// Checksums that a device computes of its own memory are used only where they were seen to be right, and faster.
#include "device/checksum_selector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "checksum/crc32c.hpp"
#include "unit/device/staging_fixture.hpp"

namespace kedge::device::checksum_choice_test {
namespace {

/// What the host computes takes a millisecond, so that a device is faster.
class ChecksumsOfDevices : public Straight {
 protected:
  static constexpr std::size_t kSize = 9000;
  static constexpr std::size_t kFromBytes = 2000;

  ChecksumsOfDevices() {
    devices->compute_checksums();
    fill(array.contents(), 9);
    (void)choosing.can_access(memory(array, 0, 1).location, owned.memory());
  }
  std::vector<std::uint32_t> read_into(const Span& from) {
    const auto target = std::span(owned.bytes).first(from.size_bytes);
    std::ranges::fill(target, std::byte{0});
    of_host = 0;
    auto found = choosing.read_into(from, target, kBlockBytes, [&](std::uint64_t offset, std::uint64_t length) {
      of_host += length;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return checksums_of(target.subspan(offset, length));
    });
    EXPECT_TRUE(std::ranges::equal(target, contents(from)));
    EXPECT_EQ(found, checksums_of(target));
    return found;
  }
  [[nodiscard]] std::span<const std::byte> contents(const Span& from) const {
    return array.contents().subspan(static_cast<std::size_t>(from.data - static_cast<std::byte*>(array.address())),
                                    from.size_bytes);
  }
  ModelDevices::Array array{*devices, 0, kSize};
  Owned owned{kSize};
  std::vector<std::pair<LogLevel, std::string>> told;
  Staging choosing{devices,
                   {3, 1024, kFromBytes},
                   [](const Failure&) {},
                   [this](LogLevel level, std::string_view line) { told.emplace_back(level, line); }};
};

TEST_F(ChecksumsOfDevices, AreTakenWhereTheyAreSeenToBeRightAndFaster) {
  read_into(memory(array, 0, kFromBytes - 1));
  EXPECT_TRUE(told.empty()) << "too little to tell";
  EXPECT_EQ(devices->checksums_computed(), 0U);
  read_into(memory(array, 0, kSize));
  EXPECT_EQ(of_host, kSize) << "to compare with";
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].first, LogLevel::info);
  EXPECT_NE(told[0].second.find("are computed by the GPU ("), std::string::npos) << told[0].second;
  for (const std::size_t size : {kFromBytes, kFromBytes + 1, 4096UL, kSize - 1}) {
    read_into(memory(array, 1, size));
    EXPECT_EQ(of_host, 0U) << size;
  }
  read_into(memory(array, 0, kFromBytes - 1));
  EXPECT_EQ(of_host, kFromBytes - 1);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(ChecksumsOfDevices, AreNotTakenWhereTheHostIsFaster) {
  devices->compute_checksums(0, std::chrono::milliseconds(100));
  read_into(memory(array, 0, kSize));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].second.find("are computed by the host ("), std::string::npos) << told[0].second;
  read_into(memory(array, 0, kSize));
  EXPECT_EQ(of_host, kSize);
  EXPECT_EQ(told.size(), 1U) << "measured once";
}

TEST_F(ChecksumsOfDevices, AreNeverTakenFromADeviceThatComputesOthers) {
  devices->compute_checksums(1);
  const auto failure = attempt([&] { read_into(memory(array, 0, kSize)); });
  ASSERT_TRUE(failure) << "either may be wrong";
  EXPECT_EQ(failure->code, ErrorCode::corrupt);
  EXPECT_NE(failure->message.find("computed different CRC32Cs of the same 9000 bytes"), std::string::npos);
  devices->compute_checksums();
  read_into(memory(array, 0, kSize));
  EXPECT_EQ(of_host, kSize);
  EXPECT_TRUE(told.empty());
}

/// A kernel would bring it to the device.
TEST_F(ChecksumsOfDevices, AreNotTakenOfManagedMemory) {
  read_into(memory(array, 0, kSize));
  Span managed = memory(array, 0, kSize);
  managed.location.is_managed = true;
  read_into(managed);
  EXPECT_EQ(of_host, kSize);
}

TEST_F(ChecksumsOfDevices, WhateverFailsTheHostComputesThem) {
  for (std::uint64_t nth = 1; nth <= 5; ++nth) {  // made, and twice begun and finished
    choosing.release();
    told.clear();
    (void)choosing.can_access(memory(array, 0, 1).location, owned.memory());
    devices->fail("checksums", nth, ErrorCode::no_space);
    read_into(memory(array, 0, kSize));
    read_into(memory(array, 0, kSize));
    EXPECT_EQ(of_host, kSize);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_NE(told[0].second.find("the model was told to fail"), std::string::npos) << told[0].second;
  }
}

/// Once it computes them, its failure is the transfer's.
TEST_F(ChecksumsOfDevices, WhatFailsLaterFailsTheTransfer) {
  read_into(memory(array, 0, kSize));
  for (const std::string what : {"copy", "wait", "checksums"}) {
    for (std::uint64_t nth = 1; nth <= (what == "checksums" ? 2U : 1U); ++nth) {
      devices->fail(what, nth, ErrorCode::no_space);
      EXPECT_TRUE(attempt([&] { read_into(memory(array, 0, kSize)); })) << what << nth;
      EXPECT_EQ(devices->copies_in_progress(), 0U) << what << nth;
      read_into(memory(array, 0, kSize));
      EXPECT_EQ(of_host, 0U);
    }
  }
}

TEST_F(ChecksumsOfDevices, ADeviceThatIsLostIsSaidToBe) {
  devices->fail("checksums", 2, ErrorCode::device_failed);
  const auto failure = attempt([&] { read_into(memory(array, 0, kSize)); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed);
}

TEST_F(ChecksumsOfDevices, ManyPiecesMakeABlock) {
  constexpr std::size_t kLarge = (std::size_t{9} << 20U) + 5;
  constexpr std::size_t kLargeBlock = std::size_t{4} << 20U;
  const ModelDevices::Array large(*devices, 0, kLarge);
  fill(large.contents(), 10);
  const auto device = devices->make_checksums(memory(large, 0, 1).location);
  begin_block_checksums(*device, {static_cast<const std::byte*>(large.address()), kLarge}, kLargeBlock);
  const auto found = finish_block_checksums(*device, kLarge, kLargeBlock);
  EXPECT_GT(devices->checksums_computed(), 30U);
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto block = large.contents().subspan(i * kLargeBlock);
    EXPECT_EQ(found[i], crc32c(block.first(std::min(kLargeBlock, block.size()))));
  }
}

}  // namespace
}  // namespace kedge::device::checksum_choice_test
