// Interface to the devices that a process uses, whatever library stands behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::device {

/// Where memory is.
struct Location {
  enum class Kind : std::uint8_t {
    host,   ///< the processor's, pinned or not
    device  ///< a device's, or managed: on either side
  };
  Kind kind = Kind::host;
  int ordinal = -1;         ///< of the device
  void* context = nullptr;  ///< the library's own
  bool is_managed = false;  ///< managed memory, which may be on either side, and moves
  bool operator==(const Location&) const = default;
};

/// Host memory that devices reach by themselves.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  virtual ~PinnedMemory() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const noexcept = 0;
};

/// Memory of a device that Kedge has allocated.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;
  /// Nothing that the host may touch.
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
};

/// Host memory that somebody else has mapped stays page-locked as long as this lives; to be destroyed before the memory
/// is unmapped.
class Registration {
 public:
  Registration() = default;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  virtual ~Registration() = default;
};

/// Copies between a device and pinned memory, or within a device, done in the order in which they were given. For one
/// thread at a time. The memory must stay until wait() has returned or thrown, or the queue is destroyed, which waits,
/// too.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  // Each begins a copy; what is wrong with it may be said by wait() only.
  virtual void copy_to_host(std::span<std::byte> to, const std::byte* from) = 0;
  virtual void copy_to_device(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void copy_within_device(std::byte* to, const std::byte* from, std::size_t size_bytes) = 0;
  /// Returns when all of them are done.
  virtual void wait() = 0;
};

/// CRC32C that a device computes of its own memory, beside its queues. For one thread at a time.
class Checksums {
 public:
  Checksums() = default;
  Checksums(const Checksums&) = delete;
  Checksums& operator=(const Checksums&) = delete;
  virtual ~Checksums() = default;

  /// Begins with the pieces of this memory, which the device can read to its end. The memory must stay until finish()
  /// has returned or thrown, or this is destroyed, which waits, too.
  virtual void begin(std::span<const std::byte> memory, std::uint64_t piece_bytes) = 0;
  /// One per piece, of which the last may be shorter.
  [[nodiscard]] virtual std::vector<std::uint32_t> finish() = 0;
};

/// A file that devices write past the page cache, as long as this lives; to be destroyed before the file is closed or
/// its size changes. From any thread.
class DirectFile {
 public:
  DirectFile() = default;
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  virtual ~DirectFile() = default;

  /// Writes memory of a device, whole pages to whole pages: all is in the file when it returns, and nothing is on
  /// stable storage. Throws io and no_space, which are the file's, device_failed, invalid_argument if this memory, and
  /// bad_state if no memory can go this way, though another one may serve. What these pages hold then is undefined.
  virtual void write(const Location& location, std::uint64_t offset, std::span<const std::byte> memory) = 0;
  /// Which one that is, for the log.
  [[nodiscard]] virtual std::string_view way() const noexcept = 0;
};

/// From any thread. What fails throws Error: invalid_argument (memory or a stream that is not what it was said to be),
/// no_space (of the device or of pinned memory), device_failed (the device is lost to this process).
class Devices {
 public:
  Devices() = default;
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  virtual ~Devices() = default;

  /// Where a pointer leads. Costs nothing worth counting in a process that uses no device.
  [[nodiscard]] virtual Location location_of(const void* data) = 0;
  /// Returns when what the stream was given so far is done; without one, all that the device was given.
  virtual void synchronize(const Location& location, const std::optional<DeviceStream>& stream) = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> queue(const Location& location) = 0;
  /// That every device can reach, made for the one at `location`.
  [[nodiscard]] virtual std::unique_ptr<PinnedMemory> pinned(const Location& location, std::size_t size_bytes) = 0;
  /// On the device at `location`.
  [[nodiscard]] virtual std::unique_ptr<DeviceMemory> allocate(const Location& location, std::size_t size_bytes) = 0;
  /// Page-locks memory that exists, page by page: slow, so do it once.
  [[nodiscard]] virtual std::unique_ptr<Registration> register_memory(const Location& location,
                                                                      std::span<std::byte> memory) = 0;
  /// Throws Error, of any code, if this device cannot compute them.
  [[nodiscard]] virtual std::unique_ptr<Checksums> checksums(const Location& location) = 0;
  /// The file of a descriptor that was opened with O_DIRECT. Throws what is no failure of the device, too, where there
  /// is no way.
  [[nodiscard]] virtual std::unique_ptr<DirectFile> direct_file(const Location& location, int descriptor) = 0;
};

/// Devices of this process: of the library that the application has loaded, as far as this build knows it.
[[nodiscard]] std::shared_ptr<Devices> system_devices();

}  // namespace kedge::device
