// The way between a device's memory and files: through a few pinned buffers, so that copying and writing overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "device/devices.hpp"

namespace kedge::device {

/// Memory on a device.
struct Span {
  std::byte* data = nullptr;
  std::uint64_t size_bytes = 0;
  Location location;
};

/// How much host memory is pinned on first use of device memory.
struct StagingSize {
  std::size_t buffers = 4;
  std::size_t buffer_bytes = std::size_t{16} << 20U;
};

/// From any thread; transfers follow each other, as they share the buffers. Throws what Devices throws, and what it is
/// given to call throws; no copy is under way afterwards.
class Staging {
 public:
  explicit Staging(std::shared_ptr<Devices> devices, StagingSize size = {});

  [[nodiscard]] Devices& devices() const noexcept { return *devices_; }
  /// Frees the buffers; another transfer takes new ones.
  void release();

  /// Calls `take` for all pieces of `from`, in order. All but the last have a buffer's size. The next ones are on their
  /// way meanwhile.
  void read(const Span& from, const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take);
  /// Likewise `fill`; what it has written goes to `to`. All of it is there when this returns.
  void write(const Span& to, const std::function<void(std::uint64_t offset, std::span<std::byte> piece)>& fill);

 private:
  struct Slot {
    std::unique_ptr<PinnedMemory> memory;
    std::unique_ptr<Queue> queue;  ///< after the memory: it may still copy there
  };
  class Transfer;

  void prepare(const Location& location, std::size_t buffers);

  std::shared_ptr<Devices> devices_;
  StagingSize size_;
  std::mutex mutex_;
  Location location_;  ///< of the queues
  std::vector<Slot> slots_;
};

}  // namespace kedge::device
