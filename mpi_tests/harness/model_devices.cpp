#include "harness/model_devices.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "checksum/crc32c.hpp"
#include "kedge/error.hpp"

namespace kedge::faults {
namespace {

/// The same pages twice.
std::pair<std::byte*, std::byte*> map_twice(std::size_t size_bytes) {
  const int file = ::memfd_create("device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size_bytes)) != 0) throw std::runtime_error("memfd_create");
  void* inside = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* outside = ::mmap(nullptr, size_bytes, PROT_NONE, MAP_SHARED, file, 0);
  ::close(file);
  if (inside == MAP_FAILED || outside == MAP_FAILED) throw std::runtime_error("mmap");
  return {static_cast<std::byte*>(outside), static_cast<std::byte*>(inside)};
}

}  // namespace

ModelDevices::Array::Array(ModelDevices& devices, int ordinal, std::size_t size_bytes)
    : devices_(devices), size_bytes_(size_bytes) {
  std::tie(outside_, inside_) = map_twice(size_bytes);
  const std::lock_guard guard(devices_.mutex_);
  devices_.allocations_[outside_] = {ordinal, size_bytes, inside_};
}

ModelDevices::Array::~Array() {
  const std::lock_guard guard(devices_.mutex_);
  devices_.allocations_.erase(outside_);
  ::munmap(outside_, size_bytes_);
  ::munmap(inside_, size_bytes_);
}

class ModelDevices::Pinned final : public device::PinnedMemory {
 public:
  Pinned(std::shared_ptr<ModelDevices> devices, std::size_t size_bytes)
      : devices_(std::move(devices)), data_(size_bytes) {
    const std::lock_guard guard(devices_->mutex_);
    devices_->pinned_[data_.data()] = size_bytes;
  }
  ~Pinned() override {
    const std::lock_guard guard(devices_->mutex_);
    devices_->pinned_.erase(data_.data());
  }
  std::span<std::byte> bytes() const noexcept override { return data_; }

 private:
  std::shared_ptr<ModelDevices> devices_;
  mutable std::vector<std::byte> data_;
};

class ModelDevices::Allocated final : public device::DeviceMemory {
 public:
  Allocated(std::shared_ptr<ModelDevices> devices, int ordinal, std::size_t size_bytes)
      : devices_(std::move(devices)), array_(*devices_, ordinal, size_bytes), size_bytes_(size_bytes) {
    const std::lock_guard guard(devices_->mutex_);
    devices_->allocated_bytes_ += size_bytes_;
  }
  ~Allocated() override {
    const std::lock_guard guard(devices_->mutex_);
    devices_->allocated_bytes_ -= size_bytes_;
  }
  std::byte* data() const noexcept override { return static_cast<std::byte*>(array_.address()); }

 private:
  std::shared_ptr<ModelDevices> devices_;
  Array array_;
  std::size_t size_bytes_;
};

class ModelDevices::Registered final : public device::Registration {
 public:
  Registered(std::shared_ptr<ModelDevices> devices, std::span<std::byte> memory)
      : devices_(std::move(devices)), memory_(memory) {
    const std::lock_guard guard(devices_->mutex_);
    if (!devices_->registered_.emplace(memory_.data(), memory_.size()).second) {
      throw std::logic_error("memory is registered twice");
    }
  }
  ~Registered() override {
    // Memory that was unmapped before is touched here, and who let it go too early is seen.
    volatile std::byte last = memory_.back();
    (void)last;
    const std::lock_guard guard(devices_->mutex_);
    devices_->registered_.erase(memory_.data());
  }

 private:
  std::shared_ptr<ModelDevices> devices_;
  std::span<std::byte> memory_;
};

/// Nothing is copied before it is waited for; what is read too early is not zero.
class ModelDevices::ModelQueue final : public device::CopyQueue {
 public:
  ModelQueue(std::shared_ptr<ModelDevices> devices, device::MemoryLocation location)
      : devices_(std::move(devices)), location_(location) {}
  ~ModelQueue() override { run(); }

  void copy_to_host(std::span<std::byte> to, const std::byte* from) override {
    devices_->count("copy");
    const std::lock_guard guard(devices_->mutex_);
    if (devices_->check_pinned(to.data(), to.size())) devices_->copied_directly_ += to.size();
    std::byte* source = devices_->inside_of(location_, from, to.size());
    std::ranges::fill(to, std::byte{0xee});
    add([to, source] { std::memcpy(to.data(), source, to.size()); });
  }
  void copy_to_device(std::byte* to, std::span<const std::byte> from) override {
    devices_->count("copy");
    const std::lock_guard guard(devices_->mutex_);
    (void)devices_->check_pinned(from.data(), from.size());
    std::byte* target = devices_->inside_of(location_, to, from.size());
    add([target, from] { std::memcpy(target, from.data(), from.size()); });
  }
  void copy_within_device(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    devices_->count("copy_within");
    const std::lock_guard guard(devices_->mutex_);
    std::byte* target = devices_->inside_of(location_, to, size_bytes);
    const std::byte* source = devices_->inside_of(location_, from, size_bytes);
    std::fill_n(target, size_bytes, std::byte{0xee});
    devices_->copied_within_ += size_bytes;
    add([target, source, size_bytes] { std::memcpy(target, source, size_bytes); });
  }
  void wait() override {
    run();
    devices_->count("wait");
  }

 private:
  void add(std::function<void()> copy) {
    copies_.push_back(std::move(copy));
    devices_->in_progress_max_ = std::max(devices_->in_progress_max_, ++devices_->in_progress_);
  }
  void run() {
    const std::lock_guard guard(devices_->mutex_);
    for (const auto& copy : copies_) copy();
    devices_->in_progress_ -= copies_.size();
    copies_.clear();
  }

  std::shared_ptr<ModelDevices> devices_;
  device::MemoryLocation location_;
  std::vector<std::function<void()>> copies_;
};

/// Computed when it is waited for, as a copy is made.
class ModelDevices::ModelChecksums final : public device::DeviceChecksums {
 public:
  ModelChecksums(std::shared_ptr<ModelDevices> devices, device::MemoryLocation location)
      : devices_(std::move(devices)), location_(location) {}
  void begin(std::span<const std::byte> memory, std::uint64_t piece_bytes) override {
    devices_->count("checksums");
    const std::lock_guard guard(devices_->mutex_);
    memory_ = {devices_->inside_of(location_, memory.data(), memory.size()), memory.size()};
    piece_bytes_ = piece_bytes;
  }
  std::vector<std::uint32_t> finish() override {
    devices_->count("checksums");
    const std::lock_guard guard(devices_->mutex_);
    std::vector<std::uint32_t> all;
    for (std::uint64_t begin = 0; begin < memory_.size(); begin += piece_bytes_) {
      const auto piece = memory_.subspan(begin, std::min<std::uint64_t>(piece_bytes_, memory_.size() - begin));
      all.push_back(crc32c(piece) ^ devices_->checksums_wrong_by_);
    }
    devices_->checksums_computed_ += all.size();
    std::this_thread::sleep_for(devices_->checksums_delay_);
    return all;
  }

 private:
  std::shared_ptr<ModelDevices> devices_;
  device::MemoryLocation location_;
  std::span<const std::byte> memory_;
  std::uint64_t piece_bytes_ = 1;
};

std::unique_ptr<device::DeviceChecksums> ModelDevices::make_checksums(const device::MemoryLocation& location) {
  count("checksums");
  const std::lock_guard guard(mutex_);
  if (!computes_checksums_) throw Error(ErrorCode::bad_state, "the model computes no checksums");
  return std::make_unique<ModelChecksums>(shared_from_this(), location);
}

std::size_t ModelDevices::checksums_computed() const {
  const std::lock_guard guard(mutex_);
  return checksums_computed_;
}

void ModelDevices::compute_checksums(std::uint32_t wrong_by, std::chrono::milliseconds delay) {
  const std::lock_guard guard(mutex_);
  computes_checksums_ = true;
  checksums_wrong_by_ = wrong_by;
  checksums_delay_ = delay;
}

void ModelDevices::give(const DeviceStream& stream, std::function<void()> kernel) {
  const std::lock_guard guard(mutex_);
  given_[stream.handle].push_back(std::move(kernel));
}

void ModelDevices::fail(const std::string& what, std::uint64_t nth, ErrorCode code) {
  const std::lock_guard guard(mutex_);
  planned_[what] = {nth, code};
}

std::size_t ModelDevices::pinned_bytes() const {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [data, size] : pinned_) sum += size;
  return sum;
}

std::size_t ModelDevices::registered_bytes() const {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [data, size] : registered_) sum += size;
  return sum;
}

std::size_t ModelDevices::copied_directly() const {
  const std::lock_guard guard(mutex_);
  return copied_directly_;
}

std::size_t ModelDevices::allocated_bytes() const {
  const std::lock_guard guard(mutex_);
  return allocated_bytes_;
}

std::size_t ModelDevices::copied_within() const {
  const std::lock_guard guard(mutex_);
  return copied_within_;
}

std::size_t ModelDevices::copies_in_progress() const {
  const std::lock_guard guard(mutex_);
  return in_progress_;
}

std::size_t ModelDevices::copies_in_progress_max() const {
  const std::lock_guard guard(mutex_);
  return in_progress_max_;
}

void ModelDevices::count(const std::string& what) {
  if (on_call) on_call(what);
  const std::lock_guard guard(mutex_);
  const auto planned = planned_.find(what);
  if (planned != planned_.end() && --planned->second.left == 0) {
    const ErrorCode code = planned->second.code;
    planned_.erase(planned);
    if (code == ErrorCode::device_failed) lost_ = code;
    else throw Error(code, "the model was told to fail: " + what);
  }
  if (lost_) throw Error(*lost_, "the model was told to fail for good: " + what);
}

std::byte* ModelDevices::inside_of(const device::MemoryLocation& location, const std::byte* outside,
                                   std::size_t size_bytes) const {
  auto after = allocations_.upper_bound(outside);
  if (after != allocations_.begin()) {
    const auto& [begin, allocation] = *--after;
    const auto offset = static_cast<std::size_t>(outside - begin);
    if (allocation.ordinal == location.ordinal && offset + size_bytes <= allocation.size_bytes) {
      return allocation.inside + offset;
    }
  }
  throw Error(ErrorCode::invalid_argument, "the model has no such memory on this device");
}

bool ModelDevices::check_pinned(const std::byte* data, std::size_t size_bytes) const {
  for (const auto* own : {&pinned_, &registered_}) {
    auto after = own->upper_bound(data);
    if (after == own->begin()) continue;
    const auto& [begin, size] = *--after;
    if (static_cast<std::size_t>(data - begin) + size_bytes <= size) return own == &registered_;
  }
  throw std::logic_error("a copy goes by host memory that is not pinned");
}

device::MemoryLocation ModelDevices::location_of(const void* data) {
  const auto* address = static_cast<const std::byte*>(data);
  const std::lock_guard guard(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  const auto& [begin, allocation] = *--after;
  if (address >= begin + allocation.size_bytes) return {};
  return {device::MemoryLocation::Kind::device, allocation.ordinal, nullptr};
}

void ModelDevices::synchronize(const device::MemoryLocation& /*location*/, const std::optional<DeviceStream>& stream) {
  count("synchronize");
  const std::lock_guard guard(mutex_);
  for (auto& [handle, kernels] : given_) {
    if (stream && stream->handle != handle) continue;
    for (const auto& kernel : kernels) kernel();
    kernels.clear();
  }
}

std::unique_ptr<device::CopyQueue> ModelDevices::make_queue(const device::MemoryLocation& location) {
  count("queue");
  return std::make_unique<ModelQueue>(shared_from_this(), location);
}

std::unique_ptr<device::PinnedMemory> ModelDevices::allocate_pinned(const device::MemoryLocation& /*location*/,
                                                                    std::size_t size_bytes) {
  count("pinned");
  return std::make_unique<Pinned>(shared_from_this(), size_bytes);
}

std::unique_ptr<device::DeviceMemory> ModelDevices::allocate(const device::MemoryLocation& location,
                                                             std::size_t size_bytes) {
  count("allocate");
  return std::make_unique<Allocated>(shared_from_this(), location.ordinal, size_bytes);
}

std::unique_ptr<device::Registration> ModelDevices::register_memory(const device::MemoryLocation& /*location*/,
                                                                    std::span<std::byte> memory) {
  count("register");
  return std::make_unique<Registered>(shared_from_this(), memory);
}

}  // namespace kedge::faults
