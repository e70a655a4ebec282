#include "device/copies.hpp"

#include "base/attempt.hpp"
#include "kedge/error.hpp"

namespace kedge::device {

std::optional<CopyPool::Copy> CopyPool::take(const Span& from) {
  const std::lock_guard guard(mutex_);
  keeps_ = true;
  const Kind kind(from.location.ordinal, from.location.context, from.size_bytes);
  std::unique_ptr<DeviceMemory> memory = memory_for(from.location, kind);
  if (!memory) return std::nullopt;
  if (!queue_ || location_ != from.location) {
    queue_ = devices_->queue(from.location);
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
std::unique_ptr<DeviceMemory> CopyPool::memory_for(const Location& location, const Kind& kind) {
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

void CopyPool::take_back(const Kind& kind, std::unique_ptr<DeviceMemory> memory) {
  const std::lock_guard guard(mutex_);
  if (keeps_) unused_.emplace(kind, std::move(memory));
}

void CopyPool::drop_unused() {
  const std::lock_guard guard(mutex_);
  unused_.clear();
}

void CopyPool::release() {
  const std::lock_guard guard(mutex_);
  unused_.clear();
  queue_.reset();
  keeps_ = false;
}

}  // namespace kedge::device
