// What tests make the fake CUDA driver do.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "unit/device/fake_cuda.hpp"
#include "unit/device/fake_cuda_state.hpp"

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the same thing in two files

extern "C" {

void fake_cuda_begin(void) { driver().begun = true; }

void fake_cuda_reset(void) {
  const std::lock_guard guard(driver().mutex);
  for (const auto& [data, allocation] : driver().allocations) {
    ::munmap(data, allocation.size_bytes);
    ::munmap(allocation.inside, allocation.size_bytes);
  }
  driver().allocations.clear();
  driver().given.clear();
  driver().failing.clear();
  driver().lost = kSuccess;
  driver().captures = false;
  driver().begun = false;
}

void* fake_cuda_allocate(std::size_t size_bytes, int ordinal, bool of_pool) {
  const std::lock_guard guard(driver().mutex);
  const int file = ::memfd_create("fake_cuda", 0);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size_bytes)) != 0) std::abort();
  void* inside = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* outside = ::mmap(nullptr, size_bytes, PROT_NONE, MAP_SHARED, file, 0);
  ::close(file);
  if (inside == MAP_FAILED || outside == MAP_FAILED) std::abort();
  driver().allocations[static_cast<std::byte*>(outside)] = {size_bytes, static_cast<std::byte*>(inside), ordinal,
                                                            of_pool};
  return outside;
}

std::byte* fake_cuda_contents(void* address) {
  const std::lock_guard guard(driver().mutex);
  return driver().allocations.at(static_cast<std::byte*>(address)).inside;
}

void fake_cuda_launch(void* stream, void (*kernel)(void*), void* argument) {
  const std::lock_guard guard(driver().mutex);
  driver().given[stream].push_back([=] { kernel(argument); });
}

void fake_cuda_fail(const char* function, int nth, int result, bool for_good) {
  const std::lock_guard guard(driver().mutex);
  driver().failing[function] = {nth, result, for_good};
}

void fake_cuda_capture(bool captures) {
  const std::lock_guard guard(driver().mutex);
  driver().captures = captures;
}

int fake_cuda_pushed(void) { return static_cast<int>(pushed.size()); }

int fake_cuda_streams(void) { return static_cast<int>(driver().streams.size()); }

int fake_cuda_pinned(void) { return static_cast<int>(driver().pinned.size() - driver().registered.size()); }

int fake_cuda_registered(void) { return static_cast<int>(driver().registered.size()); }

}  // extern "C"
