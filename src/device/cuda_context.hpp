// RAII for CUDA contexts and their objects.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/text.hpp"
#include "device/cuda_driver.hpp"
#include "device/devices.hpp"

namespace kedge::device {

inline CUdeviceptr address_of(const void* data) noexcept {
  return reinterpret_cast<CUdeviceptr>(data);  // NOLINT(*-reinterpret-cast)
}

/// Makes a context current in this thread, and the application's again at its end.
class ScopedContext {
 public:
  ScopedContext(const CudaDriver& driver, const MemoryLocation& location) : driver_(driver) {
    driver_.require_success(driver_.context_push(static_cast<CUcontext>(location.context)),
                            compose("make the context of GPU {} current", location.ordinal));
  }
  ~ScopedContext() {
    CUcontext popped = nullptr;
    (void)driver_.context_pop(&popped);
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const CudaDriver& driver_;
};

/// Keeps this thread's allocations, copies and waits from breaking a stream capture that another thread of the
/// application has begun.
class ScopedRelaxedCapture {
 public:
  explicit ScopedRelaxedCapture(const CudaDriver& driver) : driver_(driver) {
    (void)driver_.exchange_capture_mode(&mode_);
  }
  ~ScopedRelaxedCapture() { (void)driver_.exchange_capture_mode(&mode_); }
  ScopedRelaxedCapture(const ScopedRelaxedCapture&) = delete;
  ScopedRelaxedCapture& operator=(const ScopedRelaxedCapture&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Runs `work` in the context. If the context no longer exists, neither do its objects, and nothing is run.
template <class Work>
void run_in_context_if_alive(const CudaDriver& driver, const MemoryLocation& location, Work&& work) noexcept {
  if (driver.context_push(static_cast<CUcontext>(location.context)) != CUDA_SUCCESS) return;
  const ScopedRelaxedCapture uncaptured(driver);
  work();
  CUcontext popped = nullptr;
  (void)driver.context_pop(&popped);
}

class CudaPinned final : public PinnedMemory {
 public:
  CudaPinned(const CudaDriver& driver, MemoryLocation location, std::size_t size_bytes)
      : driver_(driver), location_(location), size_bytes_(size_bytes) {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.host_alloc(&data_, size_bytes, CU_MEMHOSTALLOC_PORTABLE),
                            compose("pin {} bytes of host memory", size_bytes));
  }
  ~CudaPinned() override {
    run_in_context_if_alive(driver_, location_, [&] { (void)driver_.host_free(data_); });
  }
  std::span<std::byte> bytes() const noexcept override { return {static_cast<std::byte*>(data_), size_bytes_}; }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  std::size_t size_bytes_;
  void* data_ = nullptr;
};

/// A stream of its own, whose work overlaps with the application's kernels.
class CudaStream {
 public:
  CudaStream(const CudaDriver& driver, const MemoryLocation& location) : driver_(driver), location_(location) {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.stream_create(&stream_, CU_STREAM_NON_BLOCKING),
                            compose("create a stream on GPU {}", location.ordinal));
  }
  ~CudaStream() {
    run_in_context_if_alive(driver_, location_, [&] {
      (void)driver_.stream_synchronize(stream_);
      (void)driver_.stream_destroy(stream_);
    });
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  [[nodiscard]] CUstream handle() const noexcept { return stream_; }
  /// `what` names the work for messages.
  void synchronize(std::string_view what) const {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.stream_synchronize(stream_), what);
  }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  CUstream stream_ = nullptr;
};

}  // namespace kedge::device
