// Two ranks with devices of their own.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/model_devices.hpp"

namespace kedge::faults {

inline constexpr std::size_t kMiB = std::size_t{1} << 20U;

[[nodiscard]] inline Region bytes_at(const void* data, std::size_t size_bytes) {
  return {data, DataType::uint8, Shape{size_bytes}};
}
[[nodiscard]] inline MutableRegion room_at(void* data, std::size_t size_bytes) {
  return {data, DataType::uint8, Shape{size_bytes}};
}

inline void fill(std::span<std::byte> bytes, unsigned seed) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
}

/// Two ranks, each with devices of its own.
class DeviceMemory : public testing::Test {
 protected:
  DeviceMemory() {
    job.surroundings = [this](int rank, start::Environment& environment) { environment.devices = of(rank); };
  }
  [[nodiscard]] std::shared_ptr<ModelDevices> of(int rank) const { return devices[static_cast<std::size_t>(rank)]; }

  std::vector<std::shared_ptr<ModelDevices>> devices{std::make_shared<ModelDevices>(),
                                                     std::make_shared<ModelDevices>()};
  SimulatedJob job{2};
};

}  // namespace kedge::faults
