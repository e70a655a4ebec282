// Staging over devices that are host memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "checksum/crc32c.hpp"
#include "device/staging.hpp"
#include "harness/model_devices.hpp"

namespace kedge::device {

using faults::ModelDevices;

inline constexpr StagingSize kSmall{3, 1024, 1U << 20U};

inline void fill(std::span<std::byte> bytes, unsigned seed) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
}

class StagingTest : public testing::Test {
 protected:
  [[nodiscard]] Span memory(const ModelDevices::Array& array, std::size_t offset, std::size_t size_bytes) const {
    auto* data = static_cast<std::byte*>(array.address()) + offset;
    return {data, size_bytes, devices->location_of(data)};
  }
  [[nodiscard]] static std::vector<std::byte> read(Staging& staging, const Span& from) {
    std::vector<std::byte> all;
    staging.read(from, [&](std::uint64_t offset, std::span<const std::byte> piece) {
      EXPECT_EQ(offset, all.size());
      EXPECT_EQ(piece.size(), std::min<std::uint64_t>(kSmall.buffer_bytes, from.size_bytes - offset));
      all.insert(all.end(), piece.begin(), piece.end());
    });
    return all;
  }
  static void write(Staging& staging, const Span& to, std::span<const std::byte> bytes) {
    staging.write(to, [&](std::uint64_t offset, std::span<std::byte> piece) {
      std::memcpy(piece.data(), bytes.data() + offset, piece.size());
    });
  }

  std::shared_ptr<ModelDevices> devices = std::make_shared<ModelDevices>();
  Staging staging{devices, kSmall};
};

/// Memory with an owner, as a file of the store has it.
struct Owned {
  explicit Owned(std::size_t size_bytes) : bytes(size_bytes) {}
  [[nodiscard]] HostMemory memory() { return {bytes, access}; }
  std::vector<std::byte> bytes;
  std::shared_ptr<MemoryRegistration> access = std::make_shared<MemoryRegistration>();
};

class Straight : public StagingTest {
 protected:
  /// To the byte after the first.
  void read_into(const Span& from, Owned& to) {
    of_host = 0;
    const auto target = std::span(to.bytes).subspan(1, from.size_bytes);
    const auto found =
        registering.read_into(from, target, kBlockBytes, [&](std::uint64_t offset, std::uint64_t length) {
          EXPECT_EQ(offset, of_host);
          of_host += length;
          return checksums_of(target.subspan(offset, length));
        });
    EXPECT_EQ(found, checksums_of(target));
  }
  static std::vector<std::uint32_t> checksums_of(std::span<const std::byte> bytes) {
    std::vector<std::uint32_t> all;
    for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
      all.push_back(crc32c(bytes.subspan(at, std::min(kBlockBytes, bytes.size() - at))));
    }
    return all;
  }
  static constexpr std::size_t kBlockBytes = 512;
  std::uint64_t of_host = 0;  ///< of how many bytes of the last transfer the host has computed the checksums
  std::vector<Failure> refused;
  Staging registering{devices, kSmall, [this](const Failure& why) { refused.push_back(why); }};
};

}  // namespace kedge::device
