#include "device/copies.hpp"

#include "base/attempt.hpp"
#include "kedge/error.hpp"

namespace kedge::device {

std::optional<CopyPool::Copy> CopyPool::make_copy(const Span& from) {
  const std::lock_guard guard(mutex_);
  keeps_memory_ = true;
  const MemoryKind kind(from.location.ordinal, from.location.context, from.size_bytes);
  std::unique_ptr<DeviceMemory> memory = memory_for(from.location, kind);
  if (!memory) return std::nullopt;
  if (!queue_ || location_ != from.location) {
    queue_ = devices_->make_queue(from.location);
    location_ = from.location;
  }
  const auto failure = attempt([&] {
    queue_->copy_within_device(memory->data(), from.data, from.size_bytes);
    queue_->wait();
  });
  if (failure) {
    queue_.reset();  // waits for its copies before the memory is freed
    throw Error(*failure);
  }
  return Copy(shared_from_this(), kind, std::move(memory));
}

/// Frees memory kept for regions of other sizes if needed; null if there is still too little.
std::unique_ptr<DeviceMemory> CopyPool::memory_for(const MemoryLocation& location, const MemoryKind& kind) {
  if (const auto kept = unused_.find(kind); kept != unused_.end()) return std::move(unused_.extract(kept).mapped());
  const auto allocate = [&]() -> std::unique_ptr<DeviceMemory> {
    try {
      return devices_->allocate(location, std::get<2>(kind));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_space) throw;
      return nullptr;
    }
  };
  auto memory = allocate();
  if (memory || unused_.empty()) return memory;
  unused_.clear();
  return allocate();
}

void CopyPool::return_memory(const MemoryKind& kind, std::unique_ptr<DeviceMemory> memory) {
  const std::lock_guard guard(mutex_);
  if (keeps_memory_) unused_.emplace(kind, std::move(memory));
}

void CopyPool::free_unused() {
  const std::lock_guard guard(mutex_);
  unused_.clear();
}

void CopyPool::release() {
  const std::lock_guard guard(mutex_);
  unused_.clear();
  queue_.reset();
  keeps_memory_ = false;
}

}  // namespace kedge::device
