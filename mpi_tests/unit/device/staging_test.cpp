// Memory of a device on its way through pinned buffers, and straight into a file: every byte, whatever fails, and
// nothing is left under way.
#include "device/staging.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/attempt.hpp"
#include "unit/device/staging_fixture.hpp"

namespace kedge::device::staging_test {
namespace {

TEST_F(StagingTest, BytesAreThoseOfTheDeviceWhateverTheSize) {
  const ModelDevices::Array array(*devices, 0, 9000);
  fill(array.contents(), 1);
  for (const std::size_t size : {0U, 1U, 1023U, 1024U, 1025U, 3072U, 3073U, 8999U}) {
    const auto expected = array.contents().subspan(1, size);
    EXPECT_TRUE(std::ranges::equal(read(staging, memory(array, 1, size)), expected)) << size;
    std::vector<std::byte> bytes(size);
    fill(bytes, 2);
    write(staging, memory(array, 1, size), bytes);
    EXPECT_TRUE(std::ranges::equal(array.contents().subspan(1, size), bytes)) << size;
  }
}

TEST_F(StagingTest, SeveralCopiesAreUnderWayAndNoMoreIsPinnedThanIsNeeded) {
  const ModelDevices::Array array(*devices, 0, 20 * 1024);
  EXPECT_EQ(devices->pinned_bytes(), 0U) << "no device was met";
  (void)read(staging, memory(array, 0, 700));
  EXPECT_EQ(devices->pinned_bytes(), 1024U);
  (void)read(staging, memory(array, 0, 20 * 1024));
  EXPECT_EQ(devices->pinned_bytes(), 3 * 1024U);
  EXPECT_EQ(devices->copies_in_progress_max(), 3U);
  staging.release();
  EXPECT_EQ(devices->pinned_bytes(), 0U);
  EXPECT_TRUE(std::ranges::equal(read(staging, memory(array, 0, 5000)), array.contents().first(5000)));
}

TEST_F(StagingTest, GoesFromDeviceToDevice) {
  const ModelDevices::Array first(*devices, 0, 5000);
  const ModelDevices::Array second(*devices, 1, 5000);
  fill(first.contents(), 3);
  fill(second.contents(), 4);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_TRUE(std::ranges::equal(read(staging, memory(first, 0, 5000)), first.contents()));
    EXPECT_TRUE(std::ranges::equal(read(staging, memory(second, 0, 5000)), second.contents()));
  }
  EXPECT_EQ(devices->pinned_bytes(), 3 * 1024U) << "the buffers serve both";
}

TEST_F(StagingTest, ADeviceThatGetsNoQueueLeavesTheOtherItsOwn) {
  const ModelDevices::Array first(*devices, 0, 5000);
  const ModelDevices::Array second(*devices, 1, 5000);
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    EXPECT_TRUE(std::ranges::equal(read(staging, memory(first, 0, 5000)), first.contents()));
    devices->fail("queue", nth, ErrorCode::no_space);
    EXPECT_TRUE(attempt([&] { (void)read(staging, memory(second, 0, 5000)); }));
  }
}

TEST_F(StagingTest, WhateverFailsTheNextTransferIsWhole) {
  const ModelDevices::Array first(*devices, 0, 8 * 1024);
  const ModelDevices::Array second(*devices, 1, 8 * 1024);
  fill(first.contents(), 5);
  fill(second.contents(), 6);
  for (const std::string what : {"pinned", "queue", "copy", "wait"}) {
    const bool is_once_a_buffer = what == "pinned" || what == "queue";
    for (const bool reads : {true, false}) {
      // Each write is waited for before a buffer is filled again, and at the end.
      const std::uint64_t calls = is_once_a_buffer ? 3 : what == "wait" && !reads ? 8 + 3 : 8;
      for (std::uint64_t nth = 1; nth <= calls; ++nth) {
        Staging anew(devices, kSmall);
        devices->fail(what, nth, ErrorCode::no_space);
        const auto failure = attempt([&] {
          if (reads) (void)read(anew, memory(first, 0, 8 * 1024));
          else write(anew, memory(first, 0, 8 * 1024), second.contents());
        });
        ASSERT_TRUE(failure) << what << nth;
        EXPECT_EQ(failure->code, ErrorCode::no_space);
        EXPECT_EQ(devices->copies_in_progress(), 0U) << what << nth;
        fill(first.contents(), 5);
        EXPECT_TRUE(std::ranges::equal(read(anew, memory(first, 0, 8 * 1024)), first.contents())) << what << nth;
        EXPECT_TRUE(std::ranges::equal(read(anew, memory(second, 0, 8 * 1024)), second.contents())) << what << nth;
      }
    }
  }
}

TEST_F(StagingTest, WhatCannotBeTakenEndsTheTransfer) {
  const ModelDevices::Array array(*devices, 0, 8 * 1024);
  fill(array.contents(), 7);
  for (std::uint64_t at = 0; at < 8; ++at) {
    const auto refuse = [&](std::uint64_t offset) {
      if (offset == at * 1024) throw Error(ErrorCode::io, "the store is gone");
    };
    const auto failure = attempt([&] {
      staging.read(memory(array, 0, 8 * 1024),
                   [&](std::uint64_t offset, std::span<const std::byte>) { refuse(offset); });
    });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_EQ(devices->copies_in_progress(), 0U);
    EXPECT_TRUE(attempt([&] {
      staging.write(memory(array, 0, 8 * 1024), [&](std::uint64_t offset, std::span<std::byte> piece) {
        std::memcpy(piece.data(), array.contents().data() + offset, piece.size());
        refuse(offset);
      });
    }));
    EXPECT_TRUE(std::ranges::equal(read(staging, memory(array, 0, 8 * 1024)), array.contents()));
  }
}

TEST_F(Straight, ToMemoryThatIsRegisteredForIt) {
  const ModelDevices::Array array(*devices, 0, 9000);
  const MemoryLocation location = memory(array, 0, 1).location;
  for (const std::size_t size : {1U, 1023U, 1024U, 1025U, 3073U, 8999U}) {
    Owned owned(9000);
    ASSERT_TRUE(registering.can_access(location, owned.memory()));
    EXPECT_TRUE(registering.can_access(location, owned.memory())) << "once is enough";
    EXPECT_EQ(devices->registered_bytes(), 9000U);
    fill(array.contents(), static_cast<unsigned>(size));
    read_into(memory(array, 1, size), owned);
    EXPECT_TRUE(std::ranges::equal(std::span(owned.bytes).subspan(1, size), array.contents().subspan(1, size)));
    owned.access->end();
    EXPECT_EQ(devices->registered_bytes(), 0U);
  }
  EXPECT_EQ(devices->pinned_bytes(), 0U);
  EXPECT_EQ(devices->copies_in_progress_max(), 3U);
  EXPECT_TRUE(std::ranges::equal(read(registering, memory(array, 0, 9000)), array.contents())) << "buffers, too";
}

TEST_F(Straight, OnlyWhereThatIsWanted) {
  const ModelDevices::Array array(*devices, 0, 64);
  Owned owned(64);
  EXPECT_FALSE(staging.can_access(memory(array, 0, 1).location, owned.memory()));
  EXPECT_FALSE(registering.can_access(memory(array, 0, 1).location, {}));
  EXPECT_EQ(devices->registered_bytes(), 0U);
}

TEST_F(Straight, ARefusalIsToldAndNotAskedForAgain) {
  const ModelDevices::Array array(*devices, 0, 64);
  const MemoryLocation location = memory(array, 0, 1).location;
  Owned before(64);
  Owned owned(64);
  ASSERT_TRUE(registering.can_access(location, before.memory()));
  devices->fail("register", 1, ErrorCode::no_space);
  EXPECT_FALSE(registering.can_access(location, owned.memory()));
  EXPECT_FALSE(registering.can_access(location, owned.memory()));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].code, ErrorCode::no_space);
  EXPECT_TRUE(registering.can_access(location, before.memory()));
}

/// A context that is gone, a capture: buffers say what is wrong, and the next time is another.
TEST_F(Straight, AFailureOfTheMomentIsNoRefusal) {
  const ModelDevices::Array array(*devices, 0, 64);
  const MemoryLocation location = memory(array, 0, 1).location;
  Owned owned(64);
  for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::bad_state}) {
    devices->fail("register", 1, code);
    EXPECT_FALSE(registering.can_access(location, owned.memory()));
  }
  EXPECT_TRUE(registering.can_access(location, owned.memory()));
  EXPECT_TRUE(refused.empty());
}

TEST_F(Straight, ADeviceThatIsLostIsNoRefusal) {
  const ModelDevices::Array array(*devices, 0, 64);
  Owned owned(64);
  devices->fail("register", 1, ErrorCode::device_failed);
  const auto failure = attempt([&] { (void)registering.can_access(memory(array, 0, 1).location, owned.memory()); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::device_failed);
  EXPECT_TRUE(refused.empty());
}

TEST_F(Straight, ReleaseEndsWhatItsOwnerStillHas) {
  const ModelDevices::Array array(*devices, 0, 64);
  Owned owned(64);
  ASSERT_TRUE(registering.can_access(memory(array, 0, 1).location, owned.memory()));
  registering.release();
  EXPECT_EQ(devices->registered_bytes(), 0U);
  EXPECT_TRUE(registering.can_access(memory(array, 0, 1).location, owned.memory())) << "for another transfer";
}

/// The owner is about to unmap it: when end() has returned, nothing is registered, whoever else ends it.
TEST_F(Straight, TheOwnerWaitsForWhoEndsItToo) {
  const ModelDevices::Array array(*devices, 0, 64);
  for (int turn = 0; turn < 200; ++turn) {
    Owned owned(64);
    ASSERT_TRUE(registering.can_access(memory(array, 0, 1).location, owned.memory()));
    const std::jthread other([&] { registering.release(); });
    owned.access->end();
    EXPECT_EQ(devices->registered_bytes(), 0U);
  }
}

TEST_F(Straight, MemoryMayOutliveTheStaging) {
  const ModelDevices::Array array(*devices, 0, 64);
  Owned owned(64);
  {
    Staging own(devices, kSmall, [](const Failure&) {});
    ASSERT_TRUE(own.can_access(memory(array, 0, 1).location, owned.memory()));
  }
  EXPECT_EQ(devices->registered_bytes(), 64U);
  owned.access->end();
  EXPECT_EQ(devices->registered_bytes(), 0U);
}

TEST_F(Straight, WhateverFailsNothingIsUnderWay) {
  const ModelDevices::Array array(*devices, 0, 8 * 1024);
  Owned owned(9 * 1024);
  ASSERT_TRUE(registering.can_access(memory(array, 0, 1).location, owned.memory()));
  for (const std::string what : {"copy", "wait"}) {
    for (std::uint64_t nth = 1; nth <= 8; ++nth) {
      devices->fail(what, nth, ErrorCode::no_space);
      EXPECT_TRUE(attempt([&] { read_into(memory(array, 0, 8 * 1024), owned); })) << what << nth;
      EXPECT_EQ(devices->copies_in_progress(), 0U) << what << nth;
    }
  }
  const auto failure = attempt([&] {
    registering.read_into(memory(array, 0, 8 * 1024), std::span(owned.bytes).first(8 * 1024), kBlockBytes,
                          [](std::uint64_t, std::uint64_t) -> std::vector<std::uint32_t> {
                            throw Error(ErrorCode::io, "the store is gone");
                          });
  });
  EXPECT_TRUE(failure);
  EXPECT_EQ(devices->copies_in_progress(), 0U);
}

TEST_F(StagingTest, ThreadsTakeTurns) {
  const ModelDevices::Array array(*devices, 0, 64 * 1024);
  fill(array.contents(), 8);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto expected = array.contents().subspan(i * 16 * 1024, 16 * 1024);
      for (int turn = 0; turn < 20; ++turn) {
        EXPECT_TRUE(std::ranges::equal(read(staging, memory(array, i * 16 * 1024, 16 * 1024)), expected));
      }
    });
  }
}

}  // namespace
}  // namespace kedge::device::staging_test
