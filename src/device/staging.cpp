#include "device/staging.hpp"

#include <algorithm>

#include "base/attempt.hpp"

namespace kedge::device {

/// One transfer by the buffers in turn, as many as it has pieces for. If it is left before its end, what is under way
/// is waited for.
class Staging::Transfer {
 public:
  Transfer(std::vector<Slot>& slots, std::size_t piece_bytes, std::uint64_t size_bytes)
      : piece_bytes_(piece_bytes),
        size_bytes_(size_bytes),
        slots_(std::span(slots).first(std::min<std::uint64_t>(slots.size(), pieces()))) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (is_done_) return;
    for (Slot& slot : slots_) (void)attempt([&] { slot.queue->wait(); });
  }
  /// All copies are done, or one says what failed.
  void finish() {
    for (Slot& slot : slots_) slot.queue->wait();
    is_done_ = true;
  }
  /// All copies were waited for.
  void is_done() noexcept { is_done_ = true; }
  [[nodiscard]] std::uint64_t at_once() const noexcept { return slots_.size(); }

  [[nodiscard]] std::uint64_t pieces() const noexcept { return (size_bytes_ + piece_bytes_ - 1) / piece_bytes_; }
  [[nodiscard]] std::uint64_t offset(std::uint64_t piece) const noexcept { return piece * piece_bytes_; }
  [[nodiscard]] Queue& queue(std::uint64_t piece) const noexcept { return *slots_[piece % slots_.size()].queue; }
  [[nodiscard]] std::span<std::byte> buffer(std::uint64_t piece) const noexcept {
    const std::uint64_t length = std::min<std::uint64_t>(piece_bytes_, size_bytes_ - offset(piece));
    return slots_[piece % slots_.size()].memory->bytes().first(length);
  }

 private:
  std::size_t piece_bytes_;
  std::uint64_t size_bytes_;
  std::span<Slot> slots_;
  bool is_done_ = false;
};

Staging::Staging(std::shared_ptr<Devices> devices, StagingSize size) : devices_(std::move(devices)), size_(size) {}

void Staging::release() {
  const std::lock_guard guard(mutex_);
  slots_.clear();
  location_ = {};
}

/// No more buffers than are needed at once: who has only small variables on a device pins no more than one.
void Staging::prepare(const Location& location, std::size_t buffers) {
  if (location != location_) {
    location_ = {};  // until all queues are of one location again
    for (Slot& slot : slots_) slot.queue = devices_->queue(location);
    location_ = location;
  }
  while (slots_.size() < std::min(buffers, size_.buffers)) {
    Slot slot{devices_->pinned(location, size_.buffer_bytes), devices_->queue(location)};
    slots_.push_back(std::move(slot));
  }
}

void Staging::read(const Span& from,
                   const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take) {
  if (from.size_bytes == 0) return;
  const std::lock_guard guard(mutex_);
  prepare(from.location, (from.size_bytes + size_.buffer_bytes - 1) / size_.buffer_bytes);
  Transfer transfer(slots_, size_.buffer_bytes, from.size_bytes);
  std::uint64_t begun = 0;
  const auto begin = [&] {
    transfer.queue(begun).copy_to_host(transfer.buffer(begun), from.data + transfer.offset(begun));
    ++begun;
  };
  while (begun < transfer.at_once()) begin();
  for (std::uint64_t piece = 0; piece < transfer.pieces(); ++piece) {
    transfer.queue(piece).wait();
    take(transfer.offset(piece), transfer.buffer(piece));
    if (begun < transfer.pieces()) begin();
  }
  transfer.is_done();
}

void Staging::write(const Span& to, const std::function<void(std::uint64_t offset, std::span<std::byte> piece)>& fill) {
  if (to.size_bytes == 0) return;
  const std::lock_guard guard(mutex_);
  prepare(to.location, (to.size_bytes + size_.buffer_bytes - 1) / size_.buffer_bytes);
  Transfer transfer(slots_, size_.buffer_bytes, to.size_bytes);
  for (std::uint64_t piece = 0; piece < transfer.pieces(); ++piece) {
    transfer.queue(piece).wait();  // the piece before in this buffer
    fill(transfer.offset(piece), transfer.buffer(piece));
    transfer.queue(piece).copy_to_device(to.data + transfer.offset(piece), transfer.buffer(piece));
  }
  transfer.finish();
}

}  // namespace kedge::device
