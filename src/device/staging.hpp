// The way between a device's memory and files: straight into a file's own memory where devices can write that, else
// through a few pinned buffers; several copies are under way while the host works on what has arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "device/checksum_selector.hpp"
#include "device/devices.hpp"
#include "device/direct_writes.hpp"
#include "kedge/error.hpp"

namespace kedge::device {

/// Memory on a device.
struct Span {
  std::byte* data = nullptr;
  std::uint64_t size_bytes = 0;
  Location location;
};

/// Whether devices reach memory that somebody else has mapped: its registration. From any thread.
class MemoryRegistration {
 public:
  /// The memory's owner calls it before the memory is unmapped or its file truncated.
  void end() noexcept;

 private:
  friend class Staging;
  std::mutex mutex_;
  std::shared_ptr<Devices> devices_;  // the memory's owner may outlive everybody else who uses them
  std::unique_ptr<Registration> registration_;
};

/// Host memory that devices may be made to reach.
struct HostMemory {
  std::span<std::byte> bytes;
  std::shared_ptr<MemoryRegistration> access;  ///< shared with its owner
};

/// How much host memory is pinned on first use of device memory, and from what size a device computes checksums.
struct StagingSize {
  std::size_t buffers = 4;
  std::size_t buffer_bytes = std::size_t{16} << 20U;
  std::uint64_t checksums_from_bytes = std::uint64_t{4} << 20U;  ///< smaller transfers' are computed on the host
};

/// From any thread; transfers follow each other, as they share the buffers. Throws what Devices throws, and what it is
/// given to call throws; no copy is under way afterwards.
class Staging {
 public:
  using Refused = std::function<void(const Failure& why)>;

  /// CRC32C of what has arrived, by blocks.
  using ChecksumsOf = std::function<std::vector<std::uint32_t>(std::uint64_t offset, std::uint64_t length)>;

  /// `refused` is called once, if this system does not register memory; nothing is registered after that. If it is
  /// empty, nothing is registered at all. `log` gets what ChecksumSelector logs. `direct`: for files on disks.
  explicit Staging(std::shared_ptr<Devices> devices, StagingSize size = {}, Refused refused = {},
                   ChecksumSelector::LogLine log = {}, DirectWrites::Settings direct = {});

  [[nodiscard]] Devices& devices() const noexcept { return *devices_; }
  [[nodiscard]] DirectWrites& direct_writes() noexcept { return direct_writes_; }
  /// Frees the buffers and ends all registrations; another transfer makes new ones.
  void release();

  /// Calls `take` for all pieces of `from`, in order. All but the last have a buffer's size. The next ones are on their
  /// way meanwhile.
  void read(const Span& from, const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take);
  /// Whether devices reach this memory, which is registered if need be. Throws device_failed.
  [[nodiscard]] bool reaches(const Location& location, const HostMemory& memory);
  /// Reads as read() does, but straight to `to`, of the same size, in memory that devices reach. Returns CRC32C of its
  /// blocks of `block_bytes`, a divisor of a buffer's size: computed by the device or, piece by piece as they arrive,
  /// `on_host`.
  std::vector<std::uint32_t> read_into(const Span& from, std::span<std::byte> to, std::uint64_t block_bytes,
                                       const ChecksumsOf& on_host);
  /// Calls `fill` for all pieces in order, and copies what it has written to `to`. All of it is there when this
  /// returns.
  void write(const Span& to, const std::function<void(std::uint64_t offset, std::span<std::byte> piece)>& fill);

 private:
  struct Slot {
    std::unique_ptr<PinnedMemory> memory;  ///< null until a transfer needs a buffer
    std::unique_ptr<Queue> queue;          ///< after the memory: it may still copy there
  };
  class Transfer;

  std::vector<std::uint32_t> read_pieces_into(const Span& from, std::span<std::byte> to, const ChecksumsOf& on_host);
  void prepare(const Location& location, std::uint64_t size_bytes);
  void pin(const Location& location, std::uint64_t size_bytes);
  [[nodiscard]] std::size_t slots_for(std::uint64_t size_bytes) const noexcept;

  std::shared_ptr<Devices> devices_;
  StagingSize size_;
  Refused refused_;  ///< empty: nothing is registered
  ChecksumSelector checksums_;
  DirectWrites direct_writes_;
  std::vector<std::weak_ptr<MemoryRegistration>> registered_;
  std::mutex mutex_;
  Location location_;  ///< of the queues
  std::vector<Slot> slots_;
};

}  // namespace kedge::device
