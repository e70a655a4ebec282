// Selects whether the device or the host computes checksums of device memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/devices.hpp"
#include "kedge/options.hpp"

namespace kedge::device {

/// Uses the device if it computes the same CRC32C as the host, and faster; measured once per device. Not thread-safe.
class ChecksumSelector {
 public:
  using LogLine = std::function<void(LogLevel level, std::string_view line)>;

  /// `log` gets a line with each device's selection.
  ChecksumSelector(std::shared_ptr<Devices> devices, LogLine log);

  /// Null if the host computes them.
  [[nodiscard]] DeviceChecksums* device_checksums(const MemoryLocation& location);
  [[nodiscard]] bool is_measured(const MemoryLocation& location) const noexcept;
  /// Time the host took; nothing if only the device can compute checksums.
  using HostTime = std::optional<std::chrono::duration<double>>;

  /// Compares the device with checksums that the host computed in `host_time`. Throws device_failed, or corrupt if the
  /// results differ: the device or the host is wrong, or the host's copy of the data is. Call it once per device.
  void measure_device(const MemoryLocation& location, std::span<const std::byte> memory, std::uint64_t block_bytes,
                      std::span<const std::uint32_t> of_host, HostTime host_time);
  void release();

 private:
  struct Choice {
    MemoryLocation location;
    std::unique_ptr<DeviceChecksums> device;  ///< null if the host computes them
  };
  [[nodiscard]] std::unique_ptr<DeviceChecksums> choose(const MemoryLocation& location,
                                                        std::span<const std::byte> memory, std::uint64_t block_bytes,
                                                        std::span<const std::uint32_t> of_host,
                                                        HostTime host_time) const;

  std::shared_ptr<Devices> devices_;
  LogLine log_;
  std::vector<Choice> choices_;
};

/// Begins to compute the checksums of this memory, in blocks of `block_bytes`.
void begin_block_checksums(DeviceChecksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes);
/// Returns the CRC32C of each block that begin_block_checksums() began.
[[nodiscard]] std::vector<std::uint32_t> finish_block_checksums(DeviceChecksums& device, std::uint64_t size_bytes,
                                                                std::uint64_t block_bytes);

}  // namespace kedge::device
