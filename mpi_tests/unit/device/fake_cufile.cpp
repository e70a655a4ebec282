// A fake libcufile.so.0 over the fake CUDA driver: as cuFile does in its compatibility mode, it copies by the host.
// Refuses what cuFile refuses: files without O_DIRECT, memory outside of an allocation, and calls without a context.
#include "unit/device/fake_cufile.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

extern "C" int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t size_bytes);
extern "C" int cuCtxGetCurrent(void** context);

namespace {

struct Result {
  int code;
  int cuda;
};

struct Description {
  int type;
  union {
    int descriptor;
    void* handle;
  };
  const void* operations;
};

struct Properties {
  std::array<unsigned, 2> version;
  std::array<std::size_t, 2> sizes;
  std::array<unsigned, 8> flags;
};

struct Planned {
  int left = 0;
  int result = 0;
  int error = 0;
};

struct State {
  std::mutex mutex;
  bool is_open = false;
  unsigned status_flags = 0;
  bool forces_compat = false;
  std::size_t write_max = SIZE_MAX;
  std::map<std::string, Planned> planned;
  std::map<void*, int> handles;
  std::uintptr_t next_handle = 1;
  int writes = 0;
  std::size_t bytes = 0;
};

State& state() {
  static State one;
  return one;
}

/// Whether this call fails as planned.
bool fails(const char* function, Planned& how) {
  const auto found = state().planned.find(function);
  if (found == state().planned.end() || --found->second.left != 0) return false;
  how = found->second;
  state().planned.erase(found);
  return true;
}

}  // namespace

extern "C" {

Result cuFileDriverOpen(void) {
  const std::lock_guard guard(state().mutex);
  Planned how;
  if (fails("cuFileDriverOpen", how)) return {how.result, 0};
  if (state().is_open) return {5026, 0};
  state().is_open = true;
  return {0, 0};
}

Result cuFileDriverGetProperties(Properties* properties) {
  const std::lock_guard guard(state().mutex);
  Planned how;
  if (fails("cuFileDriverGetProperties", how)) return {how.result, 0};
  *properties = {};
  properties->flags[0] = state().status_flags;
  return {0, 0};
}

Result cuFileGetParameterBool(int parameter, bool* value) {
  const std::lock_guard guard(state().mutex);
  if (parameter != 2) return {5022, 0};
  *value = state().forces_compat;
  return {0, 0};
}

Result cuFileHandleRegister(void** handle, Description* description) {
  const std::lock_guard guard(state().mutex);
  Planned how;
  if (fails("cuFileHandleRegister", how)) return {how.result, 0};
  if (!state().is_open) return {5001, 0};
  const int flags = ::fcntl(description->descriptor, F_GETFL);
  if (flags < 0 || description->type != 1 || description->operations != nullptr) return {5022, 0};
  if ((flags & O_DIRECT) == 0) return {5020, 0};
  for (const auto& [other, descriptor] : state().handles) {
    if (descriptor == description->descriptor) return {5028, 0};
  }
  *handle = reinterpret_cast<void*>(state().next_handle++);
  state().handles[*handle] = description->descriptor;
  return {0, 0};
}

void cuFileHandleDeregister(void* handle) {
  const std::lock_guard guard(state().mutex);
  const auto found = state().handles.find(handle);
  if (found == state().handles.end() || ::fcntl(found->second, F_GETFL) < 0) std::abort();  // closed before
  state().handles.erase(found);
}

ssize_t cuFileWrite(void* handle, const void* memory, std::size_t size_bytes, off_t offset, off_t memory_offset) {
  const std::lock_guard guard(state().mutex);
  Planned how;
  if (fails("cuFileWrite", how)) {
    errno = how.error;
    return how.result;
  }
  const auto found = state().handles.find(handle);
  if (found == state().handles.end()) return -5027;
  void* context = nullptr;
  if (cuCtxGetCurrent(&context) != 0 || context == nullptr) return -5047;
  size_bytes = std::min(size_bytes, state().write_max);
  const std::size_t whole = (size_bytes + 4095) / 4096 * 4096;
  const std::unique_ptr<void, void (*)(void*)> buffer(std::aligned_alloc(4096, whole), std::free);
  const auto address = reinterpret_cast<unsigned long long>(memory) + static_cast<unsigned long long>(memory_offset);
  if (cuMemcpyDtoH_v2(buffer.get(), address, size_bytes) != 0) return -5014;
  const ssize_t written = ::pwrite(found->second, buffer.get(), size_bytes, offset);
  if (written > 0) {
    ++state().writes;
    state().bytes += static_cast<std::size_t>(written);
  }
  return written;
}

void fake_cufile_reset(void) {
  const std::lock_guard guard(state().mutex);
  state().status_flags = 0;
  state().forces_compat = false;
  state().write_max = SIZE_MAX;
  state().planned.clear();
  state().writes = 0;
  state().bytes = 0;
}

void fake_cufile_says(unsigned status_flags, bool forces_compat) {
  const std::lock_guard guard(state().mutex);
  state().status_flags = status_flags;
  state().forces_compat = forces_compat;
}

void fake_cufile_fail(const char* function, int nth, int result, int error) {
  const std::lock_guard guard(state().mutex);
  state().planned[function] = {nth, result, error};
}

void fake_cufile_write_max(std::size_t bytes) { state().write_max = bytes; }

int fake_cufile_handles(void) { return static_cast<int>(state().handles.size()); }

int fake_cufile_writes(void) { return state().writes; }

std::size_t fake_cufile_bytes(void) { return state().bytes; }

}  // extern "C"
