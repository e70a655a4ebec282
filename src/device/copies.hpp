// Copies of device memory on its device; their memory is kept and reused.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "device/devices.hpp"
#include "device/staging.hpp"

namespace kedge::device {

/// Thread-safe; copies run one after the other. Throws what Devices throws.
class CopyPool : public std::enable_shared_from_this<CopyPool> {
  using MemoryKind = std::tuple<int, void*, std::uint64_t>;  // device, context, size

 public:
  explicit CopyPool(std::shared_ptr<Devices> devices) : devices_(std::move(devices)) {}

  /// A copy. Destroying it returns its memory to the pool; it may outlive the pool's other owners.
  class Copy {
   public:
    Copy(Copy&& other) noexcept = default;
    Copy& operator=(Copy&&) = delete;
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    ~Copy() {
      if (memory_) copies_->return_memory(kind_, std::move(memory_));
    }
    [[nodiscard]] Span span() const noexcept {
      return {
          memory_->data(), std::get<2>(kind_), {MemoryLocation::Kind::device, std::get<0>(kind_), std::get<1>(kind_)}};
    }

   private:
    friend class CopyPool;
    Copy(std::shared_ptr<CopyPool> copies, const MemoryKind& kind, std::unique_ptr<DeviceMemory> memory)
        : copies_(std::move(copies)), kind_(kind), memory_(std::move(memory)) {}
    std::shared_ptr<CopyPool> copies_;
    MemoryKind kind_;
    std::unique_ptr<DeviceMemory> memory_;
  };

  /// Returns the finished copy; nothing if the device lacks memory for it.
  [[nodiscard]] std::optional<Copy> make_copy(const Span& from);
  /// Frees unused memory.
  void free_unused();
  /// Frees unused memory now and the rest when it is returned.
  void release();

 private:
  [[nodiscard]] std::unique_ptr<DeviceMemory> memory_for(const MemoryLocation& location, const MemoryKind& kind);
  void return_memory(const MemoryKind& kind, std::unique_ptr<DeviceMemory> memory);

  std::shared_ptr<Devices> devices_;
  std::mutex mutex_;
  bool keeps_memory_ = true;
  MemoryLocation location_;  ///< device of the queue
  std::unique_ptr<CopyQueue> queue_;
  std::multimap<MemoryKind, std::unique_ptr<DeviceMemory>> unused_;
};

}  // namespace kedge::device
