#include "device/staging.hpp"

#include <algorithm>
#include <chrono>

#include "base/attempt.hpp"

namespace kedge::device {

/// One transfer through the buffers in turn, or through fewer if it has fewer pieces. Destroying it waits for its
/// copies.
class Staging::Transfer {
 public:
  Transfer(std::span<Slot> slots, std::uint64_t piece_bytes, std::uint64_t size_bytes)
      : piece_bytes_(piece_bytes),
        size_bytes_(size_bytes),
        slots_(slots.first(std::min<std::uint64_t>(slots.size(), pieces()))) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (is_done_) return;
    for (Slot& slot : slots_) (void)attempt([&] { slot.queue->wait(); });
  }
  /// Waits for all copies; throws if one failed.
  void finish() {
    for (Slot& slot : slots_) slot.queue->wait();
    is_done_ = true;
  }
  /// Begins copies in order, as many at once as there are slots, and passes on finished pieces.
  template <class Begin, class Take>
  void run(Begin&& begin, Take&& take) {
    std::uint64_t begun = 0;
    while (begun < slots_.size()) begin(begun++);
    for (std::uint64_t piece = 0; piece < pieces(); ++piece) {
      queue(piece).wait();
      take(piece);
      if (begun < pieces()) begin(begun++);
    }
    is_done_ = true;
  }

  [[nodiscard]] std::uint64_t pieces() const noexcept { return (size_bytes_ + piece_bytes_ - 1) / piece_bytes_; }
  [[nodiscard]] std::uint64_t offset(std::uint64_t piece) const noexcept { return piece * piece_bytes_; }
  [[nodiscard]] CopyQueue& queue(std::uint64_t piece) const noexcept { return *slots_[piece % slots_.size()].queue; }
  [[nodiscard]] std::uint64_t length(std::uint64_t piece) const noexcept {
    return std::min<std::uint64_t>(piece_bytes_, size_bytes_ - offset(piece));
  }
  [[nodiscard]] std::span<std::byte> buffer(std::uint64_t piece) const noexcept {
    return slots_[piece % slots_.size()].memory->bytes().first(length(piece));
  }

 private:
  std::uint64_t piece_bytes_;
  std::uint64_t size_bytes_;
  std::span<Slot> slots_;
  bool is_done_ = false;
};

void MemoryRegistration::end() noexcept {
  const std::lock_guard guard(mutex_);
  registration_.reset();
}

Staging::Staging(std::shared_ptr<Devices> devices, StagingSize size, OnRefused refused, ChecksumSelector::LogLine log,
                 DirectWrites::Settings direct)
    : devices_(std::move(devices)),
      size_(size),
      on_refused_(std::move(refused)),
      checksums_(devices_, std::move(log)),
      direct_writes_(devices_, std::move(direct)) {}

void Staging::release() {
  direct_writes_.release();
  const std::lock_guard guard(mutex_);
  slots_.clear();
  location_ = {};
  checksums_.release();
  for (const auto& one : std::exchange(registrations_, {})) {
    if (const auto access = one.lock()) access->end();
  }
}

std::size_t Staging::slot_count_for(std::uint64_t size_bytes) const noexcept {
  return std::min<std::uint64_t>(size_.buffers, (size_bytes + size_.buffer_bytes - 1) / size_.buffer_bytes);
}

/// Makes the queues.
void Staging::prepare_slots(const MemoryLocation& location, std::uint64_t size_bytes) {
  if (location != location_) {
    location_ = {};  // until all queues belong to one location
    for (Slot& slot : slots_) slot.queue = devices_->make_queue(location);
    location_ = location;
  }
  while (slots_.size() < slot_count_for(size_bytes)) slots_.push_back({nullptr, devices_->make_queue(location)});
}

/// Pins buffers as needed: a process with only small variables on a device pins one.
void Staging::pin_slots(const MemoryLocation& location, std::uint64_t size_bytes) {
  for (Slot& slot : std::span(slots_).first(slot_count_for(size_bytes))) {
    if (!slot.memory) slot.memory = devices_->allocate_pinned(location, size_.buffer_bytes);
  }
}

bool Staging::can_access(const MemoryLocation& location, const HostMemory& memory) {
  if (memory.bytes.empty() || !memory.access) return false;
  const std::lock_guard guard(mutex_);
  MemoryRegistration& access = *memory.access;
  const std::lock_guard of_memory(access.mutex_);
  if (access.registration_) return true;
  if (!on_refused_) return false;
  const auto failure = attempt([&] { access.registration_ = devices_->register_memory(location, memory.bytes); });
  if (!failure) {
    access.devices_ = devices_;
    std::erase_if(registrations_, [](const auto& one) { return one.expired(); });
    registrations_.push_back(memory.access);
    return true;
  }
  if (failure->code == ErrorCode::device_failed) throw Error(*failure);
  // Other errors may pass, and would also occur with buffers.
  const bool is_for_good = failure->code == ErrorCode::no_space || failure->code == ErrorCode::io;
  if (is_for_good) std::exchange(on_refused_, {})(*failure);
  return false;
}

void Staging::read(const Span& from,
                   const std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>& take) {
  if (from.size_bytes == 0) return;
  const std::lock_guard guard(mutex_);
  prepare_slots(from.location, from.size_bytes);
  pin_slots(from.location, from.size_bytes);
  Transfer transfer(slots_, size_.buffer_bytes, from.size_bytes);
  transfer.run(
      [&](std::uint64_t piece) {
        transfer.queue(piece).copy_to_host(transfer.buffer(piece), from.data + transfer.offset(piece));
      },
      [&](std::uint64_t piece) { take(transfer.offset(piece), transfer.buffer(piece)); });
}

std::vector<std::uint32_t> Staging::read_into(const Span& from, std::span<std::byte> to, std::uint64_t block_bytes,
                                              const ChecksumsOf& on_host) {
  if (from.size_bytes == 0) return {};
  const std::lock_guard guard(mutex_);
  prepare_slots(from.location, from.size_bytes);
  const std::span<const std::byte> memory(from.data, from.size_bytes);
  const bool is_worthwhile = from.size_bytes >= size_.checksums_from_bytes && !from.location.is_managed;
  DeviceChecksums* device = is_worthwhile ? checksums_.device_checksums(from.location) : nullptr;
  if (device == nullptr) {
    std::chrono::duration<double> host_time{};
    const auto timed = [&](std::uint64_t offset, std::uint64_t length) {
      const auto begun = std::chrono::steady_clock::now();
      auto found = on_host(offset, length);
      host_time += std::chrono::steady_clock::now() - begun;
      return found;
    };
    auto found = read_pieces_into(from, to, timed);
    if (is_worthwhile && !checksums_.is_measured(from.location)) {
      checksums_.measure_device(from.location, memory, block_bytes, found, host_time);
    }
    return found;
  }
  // Copies before computing checksums: if the memory is too short, CUDA refuses a copy, but a kernel would disable the
  // device.
  Transfer transfer(std::span<Slot>{slots_}.first(1), from.size_bytes, from.size_bytes);
  transfer.queue(0).copy_to_host(to, from.data);
  begin_block_checksums(*device, memory, block_bytes);
  const auto copied = attempt([&] { transfer.finish(); });
  auto found = finish_block_checksums(*device, from.size_bytes, block_bytes);
  if (copied) throw Error(*copied);
  return found;
}

std::vector<std::uint32_t> Staging::read_pieces_into(const Span& from, std::span<std::byte> to,
                                                     const ChecksumsOf& on_host) {
  std::vector<std::uint32_t> all;
  Transfer transfer(slots_, size_.buffer_bytes, from.size_bytes);
  transfer.run(
      [&](std::uint64_t piece) {
        const auto place = to.subspan(transfer.offset(piece), transfer.length(piece));
        transfer.queue(piece).copy_to_host(place, from.data + transfer.offset(piece));
      },
      [&](std::uint64_t piece) {
        const auto found = on_host(transfer.offset(piece), transfer.length(piece));
        all.insert(all.end(), found.begin(), found.end());
      });
  return all;
}

void Staging::write(const Span& to, const std::function<void(std::uint64_t offset, std::span<std::byte> piece)>& fill) {
  if (to.size_bytes == 0) return;
  const std::lock_guard guard(mutex_);
  prepare_slots(to.location, to.size_bytes);
  pin_slots(to.location, to.size_bytes);
  Transfer transfer(slots_, size_.buffer_bytes, to.size_bytes);
  for (std::uint64_t piece = 0; piece < transfer.pieces(); ++piece) {
    transfer.queue(piece).wait();  // for the earlier piece in this buffer
    fill(transfer.offset(piece), transfer.buffer(piece));
    transfer.queue(piece).copy_to_device(to.data + transfer.offset(piece), transfer.buffer(piece));
  }
  transfer.finish();
}

}  // namespace kedge::device
