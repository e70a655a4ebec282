// Transfers between device memory and files: directly into a file's memory where devices can write, otherwise through a
// few pinned buffers. Several copies are in progress while the host handles the finished ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/checksum_selector.hpp"
#include "device/devices.hpp"
#include "device/direct_writes.hpp"
#include "kedge/error.hpp"

namespace kedge::device {

/// Device memory.
struct Span {
  std::byte* data = nullptr;
  std::uint64_t size_bytes = 0;
  MemoryLocation location;
};

/// The registration of memory that was mapped elsewhere. Thread-safe.
class MemoryRegistration {
 public:
  /// The memory's owner must call it before it unmaps the memory or truncates its file.
  void end() noexcept;

 private:
  friend class Staging;
  std::mutex mutex_;
  std::shared_ptr<Devices> devices_;  // shared, because the memory's owner may outlive the other users
  std::unique_ptr<Registration> registration_;
};

/// Host memory that devices may be given access to.
struct HostMemory {
  std::span<std::byte> bytes;
  std::shared_ptr<MemoryRegistration> access;  ///< shared with the memory's owner
};

/// How much host memory is pinned on first use of device memory, and which transfers the device checksums.
struct StagingSize {
  std::size_t buffers = 4;
  std::size_t buffer_bytes = std::size_t{16} << 20U;
  std::uint64_t checksums_from_bytes = std::uint64_t{4} << 20U;  ///< the host computes those of smaller transfers
};

/// Thread-safe; transfers share the buffers and run one after the other. Throws what Devices and the callbacks throw;
/// no copy is in progress afterwards.
class Staging {
 public:
  using OnRefused = std::function<void(const Failure& why)>;

  /// Computes the CRC32C of each block of a finished piece.
  using ChecksumsOf = std::function<std::vector<std::uint32_t>(std::uint64_t offset, std::uint64_t length)>;

  /// `refused` is called once if the system refuses to register memory, which is not tried again. An empty `refused`
  /// disables registration. `log` gets ChecksumSelector's lines; `direct` writes files on disks.
  explicit Staging(std::shared_ptr<Devices> devices, StagingSize size = {}, OnRefused refused = {},
                   ChecksumSelector::LogLine log = {}, DirectWrites::Settings direct = {});

  [[nodiscard]] Devices& devices() const noexcept { return *devices_; }
  [[nodiscard]] DirectWrites& direct_writes() noexcept { return direct_writes_; }
  /// Frees the buffers and ends all registrations; the next transfer makes new ones.
  void release();

  /// Calls `take` for all pieces of `from` in order, each of a buffer's size except the last, while the next ones are
  /// copied.
  void read(const Span& from, const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take);
  /// Whether devices can access this memory; registers it if needed. Throws device_failed.
  [[nodiscard]] bool can_access(const MemoryLocation& location, const HostMemory& memory);
  /// Copies directly into `to`, which has the same size and for which can_access() is true. Returns the CRC32C of its
  /// blocks of `block_bytes`, a divisor of a buffer's size, computed by the device or, as pieces arrive, by `on_host`.
  std::vector<std::uint32_t> read_into(const Span& from, std::span<std::byte> to, std::uint64_t block_bytes,
                                       const ChecksumsOf& on_host);
  /// Calls `fill` for all pieces in order and copies them to `to`. Returns when all copies are finished.
  void write(const Span& to, const std::function<void(std::uint64_t offset, std::span<std::byte> piece)>& fill);

 private:
  struct Slot {
    std::unique_ptr<PinnedMemory> memory;  ///< null until first needed
    std::unique_ptr<CopyQueue> queue;      ///< destroyed before the memory that it may copy to
  };
  class Transfer;

  std::vector<std::uint32_t> read_pieces_into(const Span& from, std::span<std::byte> to, const ChecksumsOf& on_host);
  void prepare_slots(const MemoryLocation& location, std::uint64_t size_bytes);
  void pin_slots(const MemoryLocation& location, std::uint64_t size_bytes);
  [[nodiscard]] std::size_t slot_count_for(std::uint64_t size_bytes) const noexcept;

  std::shared_ptr<Devices> devices_;
  StagingSize size_;
  OnRefused on_refused_;  ///< empty disables registration
  ChecksumSelector checksums_;
  DirectWrites direct_writes_;
  std::vector<std::weak_ptr<MemoryRegistration>> registrations_;
  std::mutex mutex_;
  MemoryLocation location_;  ///< device of the queues
  std::vector<Slot> slots_;
};

}  // namespace kedge::device
