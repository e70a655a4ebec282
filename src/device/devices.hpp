// Interface to the devices of a process, independent of the vendor's library.
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

/// The location of memory.
struct MemoryLocation {
  enum class Kind : std::uint8_t {
    host,   ///< host memory, pinned or not
    device  ///< device or managed memory
  };
  Kind kind = Kind::host;
  int ordinal = -1;         ///< number of the device
  void* context = nullptr;  ///< context of the vendor's library
  bool is_managed = false;  ///< may move between host and device
  bool operator==(const MemoryLocation&) const = default;
};

/// Host memory that devices can access.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  virtual ~PinnedMemory() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const noexcept = 0;
};

/// Device memory that Kedge allocated.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;
  /// Not accessible from the host.
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
};

/// Keeps host memory that was mapped elsewhere page-locked. Destroy it before the memory is unmapped.
class Registration {
 public:
  Registration() = default;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  virtual ~Registration() = default;
};

/// Runs copies between a device and pinned memory, or within a device, in order. For one thread at a time. The memory
/// must stay valid until wait() returns or throws; destroying the queue also waits.
class CopyQueue {
 public:
  CopyQueue() = default;
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;
  virtual ~CopyQueue() = default;

  // These begin copies. Their errors may be reported only by wait().
  virtual void copy_to_host(std::span<std::byte> to, const std::byte* from) = 0;
  virtual void copy_to_device(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void copy_within_device(std::byte* to, const std::byte* from, std::size_t size_bytes) = 0;
  /// Returns when all copies are finished.
  virtual void wait() = 0;
};

/// CRC32C computed by a device of its own memory, concurrently with its queues. For one thread at a time.
class DeviceChecksums {
 public:
  DeviceChecksums() = default;
  DeviceChecksums(const DeviceChecksums&) = delete;
  DeviceChecksums& operator=(const DeviceChecksums&) = delete;
  virtual ~DeviceChecksums() = default;

  /// Begins to compute the pieces' checksums; the device must be able to read all of `memory`, which must stay valid
  /// until finish() returns or throws. Destroying this also waits.
  virtual void begin(std::span<const std::byte> memory, std::uint64_t piece_bytes) = 0;
  /// Returns one checksum per piece; the last piece may be shorter.
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

  /// Writes whole pages from device memory. On return they are in the file, but not on stable storage. Throws io and
  /// no_space if the file fails, device_failed if the device does, invalid_argument if this memory cannot be written
  /// this way, bad_state if no memory can. After an error the content of these pages is undefined.
  virtual void write(const MemoryLocation& location, std::uint64_t offset, std::span<const std::byte> memory) = 0;
  /// Name of the path in use, for the log.
  [[nodiscard]] virtual std::string_view method() const noexcept = 0;
};

/// Thread-safe. Calls throw Error: invalid_argument (memory or stream is not of the described kind), no_space (on the
/// device or for pinned memory), device_failed (this process cannot use the device any more).
class Devices {
 public:
  Devices() = default;
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  virtual ~Devices() = default;

  /// Location of a pointer's memory. Costs next to nothing in processes that use no device.
  [[nodiscard]] virtual MemoryLocation location_of(const void* data) = 0;
  /// Waits for the work enqueued on the stream so far; without a stream, for all of the device's work.
  virtual void synchronize(const MemoryLocation& location, const std::optional<DeviceStream>& stream) = 0;
  [[nodiscard]] virtual std::unique_ptr<CopyQueue> make_queue(const MemoryLocation& location) = 0;
  /// Pinned memory that every device can access, allocated for the one at `location`.
  [[nodiscard]] virtual std::unique_ptr<PinnedMemory> allocate_pinned(const MemoryLocation& location,
                                                                      std::size_t size_bytes) = 0;
  /// Allocates memory on the device.
  [[nodiscard]] virtual std::unique_ptr<DeviceMemory> allocate(const MemoryLocation& location,
                                                               std::size_t size_bytes) = 0;
  /// Page-locks existing memory page by page, which is slow: register it once.
  [[nodiscard]] virtual std::unique_ptr<Registration> register_memory(const MemoryLocation& location,
                                                                      std::span<std::byte> memory) = 0;
  /// Throws Error of any code if this device cannot compute checksums.
  [[nodiscard]] virtual std::unique_ptr<DeviceChecksums> make_checksums(const MemoryLocation& location) = 0;
  /// The file of a descriptor that was opened with O_DIRECT. Throws what is no failure of the device, too, where there
  /// is no way.
  [[nodiscard]] virtual std::unique_ptr<DirectFile> open_direct_file(const MemoryLocation& location,
                                                                     int descriptor) = 0;
};

/// The devices of the vendor library that the application has loaded, if this build supports it.
[[nodiscard]] std::shared_ptr<Devices> system_devices();

}  // namespace kedge::device
