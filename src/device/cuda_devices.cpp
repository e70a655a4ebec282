// Devices of CUDA.
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "base/text.hpp"
#include "device/cuda_driver.hpp"
#include "device/devices.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

/// As the driver has it.
CUdeviceptr address_of(const void* data) noexcept {
  return reinterpret_cast<CUdeviceptr>(data);  // NOLINT(*-reinterpret-cast)
}

/// A thread's current context, as long as this lives; the application's own is current again afterwards.
class Current {
 public:
  Current(const CudaDriver& driver, const Place& place) : driver_(driver) {
    driver_.check(driver_.context_push(static_cast<CUcontext>(place.context)), compose("use GPU {}", place.ordinal));
  }
  ~Current() {
    CUcontext popped = nullptr;
    (void)driver_.context_pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const CudaDriver& driver_;
};

class CudaPinned final : public PinnedMemory {
 public:
  CudaPinned(const CudaDriver& driver, Place place, std::size_t size_bytes)
      : driver_(driver), place_(place), size_bytes_(size_bytes) {
    const Current current(driver_, place_);
    driver_.check(driver_.host_alloc(&data_, size_bytes, CU_MEMHOSTALLOC_PORTABLE),
                  compose("pin {} bytes of host memory", size_bytes));
  }
  ~CudaPinned() override { (void)driver_.host_free(data_); }
  std::span<std::byte> bytes() const noexcept override { return {static_cast<std::byte*>(data_), size_bytes_}; }

 private:
  const CudaDriver& driver_;
  Place place_;
  std::size_t size_bytes_;
  void* data_ = nullptr;
};

/// A stream of its own, so that copies pass by the application's kernels.
class CudaQueue final : public Queue {
 public:
  CudaQueue(const CudaDriver& driver, const Place& place) : driver_(driver), place_(place) {
    const Current current(driver_, place_);
    driver_.check(driver_.stream_create(&stream_, CU_STREAM_NON_BLOCKING),
                  compose("make a stream on GPU {}", place.ordinal));
  }
  ~CudaQueue() override {
    (void)driver_.stream_synchronize(stream_);
    (void)driver_.stream_destroy(stream_);
  }
  void copy_to_host(std::span<std::byte> to, const std::byte* from) override {
    copy(address_of(to.data()), address_of(from), to.size(), "from");
  }
  void copy_to_device(std::byte* to, std::span<const std::byte> from) override {
    copy(address_of(to), address_of(from.data()), from.size(), "to");
  }
  void wait() override {
    driver_.check(driver_.stream_synchronize(stream_), compose("copy memory of GPU {}", place_.ordinal));
  }

 private:
  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, std::string_view direction) {
    const Current current(driver_, place_);
    driver_.check(driver_.memcpy_async(to, from, size_bytes, stream_),
                  compose("copy {} bytes {} GPU {}", size_bytes, direction, place_.ordinal));
  }

  const CudaDriver& driver_;
  Place place_;
  CUstream stream_ = nullptr;
};

class CudaDevices final : public Devices {
 public:
  Place place_of(const void* data) override;
  void settle(const Place& place, const std::optional<DeviceStream>& stream) override;
  std::unique_ptr<Queue> queue(const Place& place) override { return std::make_unique<CudaQueue>(*driver(), place); }
  std::unique_ptr<PinnedMemory> pinned(const Place& place, std::size_t size_bytes) override {
    return std::make_unique<CudaPinned>(*driver(), place, size_bytes);
  }

 private:
  [[nodiscard]] const CudaDriver* driver();
  [[nodiscard]] CUcontext primary_context(int ordinal);

  std::atomic<const CudaDriver*> driver_ = nullptr;
  std::mutex mutex_;
  std::unique_ptr<const CudaDriver> owned_;
  /// Never released: the application's may be the same.
  std::map<int, CUcontext> primary_;
};

/// Null as long as the application has not loaded it.
const CudaDriver* CudaDevices::driver() {
  if (const CudaDriver* known = driver_.load()) return known;
  auto found = CudaDriver::loaded();
  if (!found) return nullptr;
  const std::lock_guard guard(mutex_);
  if (!owned_) owned_ = std::move(found);
  driver_ = owned_.get();
  return owned_.get();
}

CUcontext CudaDevices::primary_context(int ordinal) {
  const std::lock_guard guard(mutex_);
  if (const auto known = primary_.find(ordinal); known != primary_.end()) return known->second;
  const std::string what = compose("use GPU {}", ordinal);
  CUdevice device = 0;
  CUcontext context = nullptr;
  driver_.load()->check(driver_.load()->device_get(&device, ordinal), what);
  driver_.load()->check(driver_.load()->primary_context_retain(&context, device), what);
  return primary_.emplace(ordinal, context).first->second;
}

Place CudaDevices::place_of(const void* data) {
  const CudaDriver* cuda = data == nullptr ? nullptr : driver();
  if (cuda == nullptr) return {};
  unsigned type = 0;  // stays 0 for memory that CUDA does not know
  int ordinal = -1;
  CUcontext context = nullptr;
  std::array<CUpointer_attribute, 3> asked{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                           CU_POINTER_ATTRIBUTE_CONTEXT};
  std::array<void*, 3> answers{&type, &ordinal, &context};
  const CUresult result = cuda->pointer_get_attributes(asked.size(), asked.data(), answers.data(), address_of(data));
  // No memory of a device is known before the driver is initialized, or when the process ends.
  if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_DEINITIALIZED) return {};
  cuda->check(result, "find out where memory is");
  if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) return {};
  // What comes from a pool, or was mapped, is of no context.
  return {Place::Kind::device, ordinal, context != nullptr ? context : primary_context(ordinal)};
}

void CudaDevices::settle(const Place& place, const std::optional<DeviceStream>& stream) {
  const CudaDriver& cuda = *driver();
  const Current current(cuda, place);
  const std::string what = compose("wait for what GPU {} was given before", place.ordinal);
  if (stream) cuda.check(cuda.stream_synchronize(static_cast<CUstream>(stream->handle)), what);
  else cuda.check(cuda.context_synchronize(), what);
}

}  // namespace

std::shared_ptr<Devices> system_devices() { return std::make_shared<CudaDevices>(); }

}  // namespace kedge::device
