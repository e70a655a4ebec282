#include <array>
#include <map>
#include <mutex>
#include <string>

#include "base/text.hpp"
#include "device/cuda_checksums.hpp"
#include "device/cuda_context.hpp"
#include "device/cuda_direct_file.hpp"
#include "device/cuda_driver.hpp"
#include "device/cufile.hpp"
#include "device/devices.hpp"
#include "device/loaded_driver.hpp"
#include "device/storage_kind.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(const CudaDriver& driver, const MemoryLocation& location, std::size_t size_bytes)
      : driver_(driver), location_(location) {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.memory_alloc(&address_, size_bytes),
                            compose("allocate {} bytes on GPU {}", size_bytes, location.ordinal));
  }
  ~CudaMemory() override {
    run_in_context_if_alive(driver_, location_, [&] { (void)driver_.memory_free(address_); });
  }
  std::byte* data() const noexcept override {
    return reinterpret_cast<std::byte*>(address_);  // NOLINT(*-reinterpret-cast,*-int-to-ptr)
  }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  CUdeviceptr address_ = 0;
};

class CudaRegistration final : public Registration {
 public:
  CudaRegistration(const CudaDriver& driver, const MemoryLocation& location, std::span<std::byte> memory)
      : driver_(driver), location_(location), data_(memory.data()) {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.host_register(data_, memory.size(), CU_MEMHOSTREGISTER_PORTABLE),
                            compose("page-lock {} bytes of host memory", memory.size()));
  }
  ~CudaRegistration() override {
    run_in_context_if_alive(driver_, location_, [&] { (void)driver_.host_unregister(data_); });
  }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  void* data_;
};

class CudaQueue final : public CopyQueue {
 public:
  CudaQueue(const CudaDriver& driver, const MemoryLocation& location)
      : driver_(driver), location_(location), stream_(driver, location) {}
  void copy_to_host(std::span<std::byte> to, const std::byte* from) override {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.copy_to_host(to.data(), address_of(from), to.size(), stream_.handle()),
                            compose("copy {} bytes from GPU {}", to.size(), location_.ordinal));
  }
  void copy_to_device(std::byte* to, std::span<const std::byte> from) override {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.copy_to_device(address_of(to), from.data(), from.size(), stream_.handle()),
                            compose("copy {} bytes to GPU {}", from.size(), location_.ordinal));
  }
  void copy_within_device(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.copy_within_device(address_of(to), address_of(from), size_bytes, stream_.handle()),
                            compose("copy {} bytes within GPU {}", size_bytes, location_.ordinal));
  }
  void wait() override { stream_.synchronize(compose("copy memory of GPU {}", location_.ordinal)); }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  CudaStream stream_;
};

class CudaDevices final : public Devices {
 public:
  MemoryLocation location_of(const void* data) override;
  void synchronize(const MemoryLocation& location, const std::optional<DeviceStream>& stream) override;
  std::unique_ptr<CopyQueue> make_queue(const MemoryLocation& location) override {
    return std::make_unique<CudaQueue>(*driver(), location);
  }
  std::unique_ptr<PinnedMemory> allocate_pinned(const MemoryLocation& location, std::size_t size_bytes) override {
    return std::make_unique<CudaPinned>(*driver(), location, size_bytes);
  }
  std::unique_ptr<DeviceMemory> allocate(const MemoryLocation& location, std::size_t size_bytes) override {
    return std::make_unique<CudaMemory>(*driver(), location, size_bytes);
  }
  std::unique_ptr<Registration> register_memory(const MemoryLocation& location, std::span<std::byte> memory) override {
    return std::make_unique<CudaRegistration>(*driver(), location, memory);
  }
  std::unique_ptr<DeviceChecksums> make_checksums(const MemoryLocation& location) override {
    return cuda_checksums(*driver(), location);
  }
  std::unique_ptr<DirectFile> open_direct_file(const MemoryLocation& location, int descriptor) override;

 private:
  [[nodiscard]] const CudaDriver* driver();
  [[nodiscard]] CUcontext context_on(int ordinal);
  [[nodiscard]] const CuFile& cufile();

  LoadedDriver loaded_;
  std::mutex mutex_;
  std::unique_ptr<const CudaDriver> driver_;
  std::unique_ptr<const CuFile> cufile_;
  /// Primary contexts, retained until the process ends: releasing the last reference would destroy one.
  std::map<int, CUcontext> primary_;
};

/// Null until the application has loaded the driver, without which there is no device memory.
const CudaDriver* CudaDevices::driver() {
  void* library = loaded_.handle();
  if (library == nullptr) return nullptr;
  const std::lock_guard guard(mutex_);
  if (!driver_) driver_ = CudaDriver::load_from(library);
  return driver_.get();
}

/// Loads cuFile on first use: never in programs that save no GPU memory to a disk.
const CuFile& CudaDevices::cufile() {
  const std::lock_guard guard(mutex_);
  if (!cufile_) cufile_ = CuFile::load();
  return *cufile_;
}

std::unique_ptr<DirectFile> CudaDevices::open_direct_file(const MemoryLocation& location, int descriptor) {
  return cuda_direct_file(*driver(), cufile(), location, descriptor, storage_kinds(descriptor));
}

/// For memory without a context: the application's current one if it is on this device, else the primary one.
CUcontext CudaDevices::context_on(int ordinal) {
  const CudaDriver& cuda = *driver();
  const std::string what = compose("find a context on GPU {}", ordinal);
  CUdevice device = 0;
  cuda.require_success(cuda.device_get(&device, ordinal), what);
  CUcontext context = nullptr;
  CUdevice current = 0;
  cuda.require_success(cuda.context_get_current(&context), what);
  if (context != nullptr && cuda.context_get_device(&current) == CUDA_SUCCESS && current == device) return context;
  const std::lock_guard guard(mutex_);
  if (const auto known = primary_.find(ordinal); known != primary_.end()) return known->second;
  cuda.require_success(cuda.primary_context_retain(&context, device), what);
  return primary_.emplace(ordinal, context).first->second;
}

/// Whether a failed pointer query means that the memory is not a device's: MPI libraries load the driver into programs
/// that never use it.
bool is_of_no_device(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT: return true;
    default: return false;
  }
}

MemoryLocation CudaDevices::location_of(const void* data) {
  const CudaDriver* cuda = data == nullptr ? nullptr : driver();
  if (cuda == nullptr) return {};
  unsigned type = 0;  // stays 0 for memory unknown to CUDA
  unsigned is_managed = 0;
  int ordinal = -1;
  CUcontext context = nullptr;
  std::array<CUpointer_attribute, 4> asked{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                           CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  std::array<void*, 4> answers{&type, &is_managed, &ordinal, &context};
  const CUresult result = cuda->pointer_get_attributes(asked.size(), asked.data(), answers.data(), address_of(data));
  if (is_of_no_device(result)) return {};
  cuda->require_success(result, "query the pointer's attributes");
  // Managed memory has the type of its current location, host or device.
  if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED && is_managed == 0) return {};
  return {MemoryLocation::Kind::device, ordinal, context != nullptr ? context : context_on(ordinal), is_managed != 0};
}

void CudaDevices::synchronize(const MemoryLocation& location, const std::optional<DeviceStream>& stream) {
  const CudaDriver* cuda = driver();
  if (cuda == nullptr) return;  // no driver, no streams
  const auto wait = [&] {
    const std::string what = location.ordinal < 0 ? std::string("synchronize with a stream")
                                                  : compose("synchronize with GPU {}", location.ordinal);
    cuda->require_success(
        stream ? cuda->stream_synchronize(static_cast<CUstream>(stream->handle)) : cuda->context_synchronize(), what);
  };
  if (location.kind == MemoryLocation::Kind::host) return wait();  // a stream of the application's context
  const ScopedContext current(*cuda, location);
  wait();
}

}  // namespace

std::shared_ptr<Devices> system_devices() { return std::make_shared<CudaDevices>(); }

}  // namespace kedge::device
