// Copies within a device: in memory that is used again, and freed.
#include "device/copies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "harness/model_devices.hpp"

namespace kedge::device::copies_test {
namespace {

using faults::ModelDevices;

class CopiesTest : public testing::Test {
 protected:
  [[nodiscard]] Span span(const ModelDevices::Array& array, std::size_t size_bytes) const {
    return {static_cast<std::byte*>(array.address()), size_bytes, devices->location_of(array.address())};
  }
  [[nodiscard]] std::vector<std::byte> contents(const Span& of) const {
    Staging staging(devices, {2, 64});
    std::vector<std::byte> all;
    staging.read(of, [&](std::uint64_t, std::span<const std::byte> piece) {
      all.insert(all.end(), piece.begin(), piece.end());
    });
    return all;
  }

  std::shared_ptr<ModelDevices> devices = std::make_shared<ModelDevices>();
  std::shared_ptr<CopyPool> copies = std::make_shared<CopyPool>(devices);
};

TEST_F(CopiesTest, AreThereWhenTakeReturns) {
  for (const int ordinal : {0, 1}) {
    const ModelDevices::Array array(*devices, ordinal, 200);
    std::ranges::fill(array.contents(), std::byte{7});
    const auto copy = copies->make_copy(span(array, 200));
    std::ranges::fill(array.contents(), std::byte{0});
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->span().location, devices->location_of(array.address()));
    EXPECT_EQ(contents(copy->span()), std::vector<std::byte>(200, std::byte{7}));
  }
}

TEST_F(CopiesTest, UseMemoryOfTheirSizeAgainUntilItIsReleased) {
  const ModelDevices::Array array(*devices, 0, 200);
  std::byte* first = copies->make_copy(span(array, 200))->span().data;
  EXPECT_EQ(copies->make_copy(span(array, 200))->span().data, first);
  auto other = copies->make_copy(span(array, 100));
  EXPECT_EQ(devices->allocated_bytes(), 300U);
  copies->free_unused();
  EXPECT_EQ(devices->allocated_bytes(), 100U);
  copies->release();
  EXPECT_EQ(devices->allocated_bytes(), 100U) << "it is in use";
  other.reset();
  EXPECT_EQ(devices->allocated_bytes(), 0U);
}

// Memory that is kept for others must not be the memory that is missing.
TEST_F(CopiesTest, WithoutMemoryWhatIsNotInUseIsFreedFirst) {
  const ModelDevices::Array array(*devices, 0, 200);
  (void)copies->make_copy(span(array, 200));
  devices->fail("allocate", 1, ErrorCode::no_space);
  EXPECT_TRUE(copies->make_copy(span(array, 100)));
  EXPECT_EQ(devices->allocated_bytes(), 100U);
  copies->free_unused();
  devices->fail("allocate", 1, ErrorCode::no_space);
  EXPECT_FALSE(copies->make_copy(span(array, 100)));
  EXPECT_TRUE(copies->make_copy(span(array, 100)));
}

TEST_F(CopiesTest, WhatFailsIsThrownAndLeavesNothingUnderWay) {
  const ModelDevices::Array array(*devices, 0, 200);
  for (const char* what : {"allocate", "queue", "copy_within", "wait"}) {
    copies->release();
    devices->fail(what, 1, ErrorCode::invalid_argument);
    EXPECT_THROW((void)copies->make_copy(span(array, 200)), Error) << what;
    EXPECT_EQ(devices->copies_in_progress(), 0U) << what;
    EXPECT_EQ(devices->allocated_bytes(), 0U) << what;
    EXPECT_TRUE(copies->make_copy(span(array, 200))) << what;
  }
}

TEST_F(CopiesTest, MayOutliveTheirOwner) {
  const ModelDevices::Array array(*devices, 0, 200);
  auto copy = copies->make_copy(span(array, 200));
  copies.reset();
  std::thread([&] { copy.reset(); }).join();
  EXPECT_EQ(devices->allocated_bytes(), 0U);
}

}  // namespace
}  // namespace kedge::device::copies_test
