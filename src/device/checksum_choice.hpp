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

/// The device, if it was seen to compute what the host does, and faster; measured once for each. For one thread at a
/// time.
class ChecksumChoice {
 public:
  using Told = std::function<void(LogLevel level, std::string_view line)>;

  /// What was chosen, in words, is told once for each device.
  ChecksumChoice(std::shared_ptr<Devices> devices, Told told);

  /// Null if the host computes them.
  [[nodiscard]] Checksums* on_device(const Location& location);
  [[nodiscard]] bool is_open(const Location& location) const noexcept;
  /// How long the host took; nothing where only the device can compute them.
  using HostTime = std::optional<std::chrono::duration<double>>;

  /// Measures with what the host has computed, in `host_time`. Throws device_failed.
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
  Told told_;
  std::vector<Choice> choices_;
};

/// By blocks of `block_bytes`, of what begin_blocks() began with.
void begin_blocks(Checksums& device, std::span<const std::byte> memory, std::uint64_t block_bytes);
[[nodiscard]] std::vector<std::uint32_t> finish_blocks(Checksums& device, std::uint64_t size_bytes,
                                                       std::uint64_t block_bytes);

}  // namespace kedge::device
