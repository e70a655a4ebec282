// A fake libcuda.so.1: device memory is host memory that nobody can touch, and streams run when waited for.
// Refuses what CUDA refuses: copies outside of an allocation, in a wrong context, or by host memory that is not pinned.
#include "unit/device/fake_cuda.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "unit/device/fake_cuda_state.hpp"

namespace {

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the same thing in two files

/// Runs `work` unless the call is to fail.
template <class Work>
int call(const char* function, Work&& work) {
  const std::lock_guard guard(driver().mutex);
  if (!driver().begun) return kNotInitialized;
  if (const int result = planned(function); result != kSuccess) return result;
  return work();
}

/// What allocates or frees, in a thread that has not said that it stands apart from captures.
bool breaks_capture() { return driver().captures && capture_mode == 0; }

void run(void* stream) {
  for (const auto& work : std::exchange(driver().given[stream], {})) work();
}

bool is_default(void* stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

bool is_stream(void* stream) { return is_default(stream) || driver().streams.contains(stream); }

/// The memory that these bytes are, as a copy in the current context may reach them; null if it may not.
std::byte* reach(unsigned long long address, std::size_t size_bytes, bool& is_device) {
  auto* data = reinterpret_cast<std::byte*>(address);
  if (const auto found = within(driver().allocations, data); found != driver().allocations.end()) {
    const auto& [begin, allocation] = *found;
    const auto offset = static_cast<std::size_t>(data - begin);
    if (offset < allocation.size_bytes) {
      is_device = true;
      const bool fits = offset + size_bytes <= allocation.size_bytes;
      return fits && pushed.back() == allocation.ordinal ? allocation.inside + offset : nullptr;
    }
  }
  is_device = false;
  const auto found = within(driver().pinned, data);
  if (found == driver().pinned.end()) return nullptr;
  return static_cast<std::size_t>(data - found->first) + size_bytes <= found->second ? data : nullptr;
}

int copy_async(const char* function, unsigned long long to, unsigned long long from, std::size_t size_bytes,
               void* stream) {
  return call(function, [&] {
    if (pushed.empty()) return kInvalidContext;
    if (!is_stream(stream)) return kInvalidHandle;
    bool to_device = false;
    bool from_device = false;
    std::byte* target = reach(to, size_bytes, to_device);
    const std::byte* source = reach(from, size_bytes, from_device);
    if (target == nullptr || source == nullptr || (!to_device && !from_device)) return kInvalidValue;
    if (!to_device) std::memset(target, 0xee, size_bytes);
    driver().given[stream].push_back([=] { std::memcpy(target, source, size_bytes); });
    return kSuccess;
  });
}

/// What touches memory of the device: touch(where the bytes are).
template <class Touch>
int on_device(const char* function, unsigned long long address, std::size_t size_bytes, Touch&& touch) {
  return call(function, [&] {
    bool is_device = false;
    std::byte* data = pushed.empty() ? nullptr : reach(address, size_bytes, is_device);
    if (data == nullptr || !is_device) return kInvalidValue;
    touch(data);
    return kSuccess;
  });
}

}  // namespace

extern "C" {

int cuGetErrorName(int error, const char** text) {
  static const std::map<int, const char*> names{{1, "CUDA_ERROR_INVALID_VALUE"},
                                                {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                {400, "CUDA_ERROR_INVALID_HANDLE"},
                                                {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(error);
  *text = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : kSuccess;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == 700 ? "an illegal memory access was encountered" : "a fake error";
  return kSuccess;
}

int cuPointerGetAttributes(unsigned count, const int* attributes, void** data, unsigned long long address) {
  return call("cuPointerGetAttributes", [&] {
    auto* at = reinterpret_cast<std::byte*>(address);
    const auto found = within(driver().allocations, at);
    const bool known = found != driver().allocations.end() && at < found->first + found->second.size_bytes;
    for (unsigned i = 0; i < count; ++i) {
      if (attributes[i] == 1) {
        *static_cast<void**>(data[i]) = known && !found->second.of_pool ? context_of(found->second.ordinal) : nullptr;
      } else if (attributes[i] == 2) {
        *static_cast<unsigned*>(data[i]) = known ? 2 : 0;
      } else if (attributes[i] == 9) {
        *static_cast<int*>(data[i]) = known ? found->second.ordinal : -2;
      } else if (attributes[i] == 8) {
        *static_cast<unsigned*>(data[i]) = 0;
      } else {
        return kInvalidValue;
      }
    }
    return kSuccess;
  });
}

int cuPointerGetAttribute(void* data, int attribute, unsigned long long address) {
  return cuPointerGetAttributes(1, &attribute, &data, address);
}

int cuDeviceGet(int* device, int ordinal) {
  return call("cuDeviceGet", [&] { return *device = ordinal, kSuccess; });
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  return call("cuDevicePrimaryCtxRetain", [&] { return *context = context_of(device), kSuccess; });
}

int cuCtxPushCurrent_v2(void* context) {
  return call("cuCtxPushCurrent", [&] {
    if (context == nullptr) return kInvalidContext;
    pushed.push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1);
    return kSuccess;
  });
}

int cuCtxPopCurrent_v2(void** context) {
  const std::lock_guard guard(driver().mutex);
  if (pushed.empty()) return kInvalidContext;
  *context = context_of(pushed.back());
  pushed.pop_back();
  return kSuccess;
}

int cuCtxSynchronize(void) {
  return call("cuCtxSynchronize", [&] {
    if (pushed.empty()) return kInvalidContext;
    for (auto& [stream, work] : driver().given) run(stream);
    return kSuccess;
  });
}

int cuStreamCreate(void** stream, unsigned flags) {
  return call("cuStreamCreate", [&] {
    if (pushed.empty()) return kInvalidContext;
    if (flags != 1) return kInvalidValue;  // one that waits for the default stream would wait for the application
    *stream = std::malloc(1);
    driver().streams.insert(*stream);
    return kSuccess;
  });
}

int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard guard(driver().mutex);
  if (pushed.empty()) return kInvalidContext;
  if (driver().streams.erase(stream) == 0) return kInvalidHandle;
  driver().given.erase(stream);
  std::free(stream);
  return kSuccess;
}

int cuStreamSynchronize(void* stream) {
  return call("cuStreamSynchronize", [&] {
    if (pushed.empty() && !is_default(stream)) return kInvalidContext;
    if (!is_stream(stream)) return kInvalidHandle;
    run(stream);
    return kSuccess;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t size_bytes, void* stream) {
  return copy_async("cuMemcpyDtoHAsync", reinterpret_cast<std::uintptr_t>(to), from, size_bytes, stream);
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t size_bytes, void* stream) {
  return copy_async("cuMemcpyHtoDAsync", to, reinterpret_cast<std::uintptr_t>(from), size_bytes, stream);
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t size_bytes, void* stream) {
  return copy_async("cuMemcpyDtoDAsync", to, from, size_bytes, stream);
}

int cuMemHostAlloc(void** data, std::size_t size_bytes, unsigned flags) {
  return call("cuMemHostAlloc", [&] {
    if (pushed.empty()) return kInvalidContext;
    if (breaks_capture()) return kCaptureInvalidated;
    if ((flags & 1U) == 0) return kInvalidValue;  // only the device that was current could use it
    *data = std::malloc(size_bytes);
    driver().pinned[static_cast<std::byte*>(*data)] = size_bytes;
    return kSuccess;
  });
}

int cuMemFreeHost(void* data) {
  const std::lock_guard guard(driver().mutex);
  if (pushed.empty()) return kInvalidContext;
  if (breaks_capture()) return kCaptureInvalidated;
  if (driver().pinned.erase(static_cast<std::byte*>(data)) == 0) return kInvalidValue;
  std::free(data);
  return kSuccess;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

int cuMemHostRegister_v2(void* data, std::size_t size_bytes, unsigned flags) {
  return call("cuMemHostRegister", [&] {
    if (pushed.empty()) return kInvalidContext;
    if (breaks_capture()) return kCaptureInvalidated;
    if ((flags & 1U) == 0 || size_bytes == 0) return kInvalidValue;
    auto* bytes = static_cast<std::byte*>(data);
    if (!driver().registered.insert(bytes).second) return kAlreadyRegistered;
    driver().pinned[bytes] = size_bytes;
    return kSuccess;
  });
}

int cuMemHostUnregister(void* data) {
  const std::lock_guard guard(driver().mutex);
  if (pushed.empty()) return kInvalidContext;
  if (breaks_capture()) return kCaptureInvalidated;
  if (driver().registered.erase(static_cast<std::byte*>(data)) == 0) return kNotRegistered;
  driver().pinned.erase(static_cast<std::byte*>(data));
  return kSuccess;
}

// What programs call beside what Kedge does.

int cuInit(unsigned /*flags*/) {
  driver().begun = true;
  return kSuccess;
}

int cuDriverGetVersion(int* version) { return *version = 0, kSuccess; }

int cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&] { return *count = 2, kSuccess; });
}

int cuDeviceGetName(char* name, int length, int /*device*/) {
  std::strncpy(name, "none: a driver for tests", static_cast<std::size_t>(length));
  return kSuccess;
}

int cuCtxGetDevice(int* device) {
  if (pushed.empty()) return kInvalidContext;
  return *device = pushed.back(), kSuccess;
}

int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t size_bytes, void* stream) {
  return copy_async("cuMemcpyAsync", to, from, size_bytes, stream);
}

int cuCtxSetCurrent(void* context) {
  pushed.clear();
  return cuCtxPushCurrent_v2(context);
}

int cuCtxGetCurrent(void** context) {
  return *context = pushed.empty() ? nullptr : context_of(pushed.back()), kSuccess;
}

int cuMemAlloc_v2(unsigned long long* address, std::size_t size_bytes) {
  return call("cuMemAlloc", [&] {
    if (pushed.empty()) return kInvalidContext;
    if (breaks_capture()) return kCaptureInvalidated;
    *address = reinterpret_cast<std::uintptr_t>(fake_cuda_allocate(size_bytes, pushed.back(), false));
    return kSuccess;
  });
}

int cuMemAllocAsync(unsigned long long* address, std::size_t size_bytes, void* /*stream*/) {
  *address = reinterpret_cast<std::uintptr_t>(fake_cuda_allocate(size_bytes, pushed.back(), true));
  return kSuccess;
}

int cuMemFree_v2(unsigned long long address) {
  return call("cuMemFree", [&] {
    if (breaks_capture()) return kCaptureInvalidated;
    const auto found = driver().allocations.find(reinterpret_cast<std::byte*>(address));
    if (found == driver().allocations.end()) return kInvalidValue;
    for (auto& [stream, work] : driver().given) run(stream);  // as CUDA does
    ::munmap(found->first, found->second.size_bytes);
    ::munmap(found->second.inside, found->second.size_bytes);
    driver().allocations.erase(found);
    return kSuccess;
  });
}

int cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t size_bytes, void* stream) {
  return on_device("cuMemsetD8Async", to, size_bytes, [&](std::byte* data) {
    driver().given[stream].push_back([=] { std::memset(data, value, size_bytes); });
  });
}

int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t size_bytes) {
  return on_device("cuMemcpyHtoD", to, size_bytes, [&](std::byte* data) { std::memcpy(data, from, size_bytes); });
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t size_bytes) {
  return on_device("cuMemcpyDtoH", from, size_bytes, [&](std::byte* data) { std::memcpy(to, data, size_bytes); });
}

}  // extern "C"
