// Who computes the checksums of a device's memory.
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

/// Uses the device if it was measured to compute the same CRC32C as the host, faster; measured once per device. Not
/// thread-safe.
class ChecksumSelector {
 public:
  using LogLine = std::function<void(LogLevel level, std::string_view line)>;

  /// `log` gets what was chosen, once for each device.
  ChecksumSelector(std::shared_ptr<Devices> devices, LogLine log);

  /// Null if the host computes them.
  [[nodiscard]] Checksums* on_device(const Location& location);
  [[nodiscard]] bool is_measured(const Location& location) const noexcept;
  /// How long the host took; nothing where only the device can compute them.
  using HostTime = std::optional<std::chrono::duration<double>>;

  /// Measures with what the host has computed, in `host_time`. Throws device_failed, and corrupt if the device computes
  /// something else: either may be wrong, or what the host has is no longer what the device had. Not asked again.
  void measure(const Location& location, std::span<const std::byte> memory, std::uint64_t block_bytes,
               std::span<const std::uint32_t> of_host, HostTime host_time);
  void release();

 private:
  struct Choice {
    Location location;
    std::unique_ptr<Checksums> device;  ///< null: the host
  };
  [[nodiscard]] std::unique_ptr<Checksums> chosen(const Location& location, std::span<const std::byte> memory,
                                                  std::uint64_t block_bytes, std::span<const std::uint32_t> of_host,
                                                  HostTime host_time) const;

  std::shared_ptr<Devices> devices_;
  LogLine log_;
  std::vector<Choice> choices_;
};

/// Begins with the blocks of `block_bytes` of this memory.
void begin_blocks(Checksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes);
/// CRC32C of each block of what begin_blocks() was given.
[[nodiscard]] std::vector<std::uint32_t> finish_blocks(Checksums& device, std::uint64_t size_bytes,
                                                       std::uint64_t block_bytes);

}  // namespace kedge::device
