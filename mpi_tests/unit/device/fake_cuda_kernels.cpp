// The part of the fake CUDA driver that runs kernels: computes what they do (kernels_test runs their source).
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "device/kernels/crc32c_fold.hpp"
#include "unit/device/fake_cuda_state.hpp"

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the same thing in two files

namespace {

int module_of_kernels = 0;

enum class Kernel { crc32c, breaks };
std::map<std::string_view, Kernel> kernels{{"kedge_crc32c", Kernel::crc32c}, {"breaks", Kernel::breaks}};

bool is_kernel(const void* function) {
  return std::ranges::any_of(kernels, [&](const auto& one) { return &one.second == function; });
}

/// As a kernel sees it.
template <class T>
T* inside(void* argument) {
  auto* address = *static_cast<std::byte**>(argument);
  const auto found = within(driver().allocations, address);
  const bool is_device = found != driver().allocations.end() && address < found->first + found->second.size_bytes;
  return reinterpret_cast<T*>(is_device ? found->second.inside + (address - found->first) : address);
}

/// What the polynomial leaves of this.
std::uint32_t raw_of(const std::uint8_t* data, std::uint64_t size_bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> all{};
    for (std::uint32_t i = 0; i < all.size(); ++i)
      all[i] = kedge::device::multiply_polynomials(i, 1U << 23U);  // by x^8
    return all;
  }();
  std::uint32_t raw = 0;
  for (std::uint64_t i = 0; i < size_bytes; ++i) raw = table[(raw ^ data[i]) & 0xffU] ^ (raw >> 8U);
  return raw;
}

std::function<void()> checksums(void** arguments, unsigned blocks) {
  const auto* data = inside<const std::uint8_t>(arguments[0]);
  const auto size_bytes = *static_cast<std::uint64_t*>(arguments[1]);
  const auto piece_bytes = *static_cast<std::uint64_t*>(arguments[2]);
  auto* raw = inside<std::uint32_t>(arguments[3]);
  return [=] {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const std::uint64_t begin = block * piece_bytes;
      raw[block] = raw_of(data + begin, std::min(piece_bytes, size_bytes - begin));
    }
  };
}

}  // namespace

extern "C" {

int cuModuleLoadData(void** module, const void* image) {
  const std::lock_guard guard(driver().mutex);
  if (const int result = planned("cuModuleLoadData"); result != kSuccess) return result;
  if (pushed.empty()) return kInvalidContext;
  if (driver().captures && capture_mode == 0) return kCaptureInvalidated;
  if (image == nullptr) return kInvalidValue;
  ++driver().modules;
  return *module = &module_of_kernels, kSuccess;
}

int cuModuleUnload(void* module) {
  const std::lock_guard guard(driver().mutex);
  if (pushed.empty()) return kInvalidContext;
  if (module != &module_of_kernels) return kInvalidHandle;
  return --driver().modules, kSuccess;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (module != &module_of_kernels) return kInvalidHandle;
  const auto found = kernels.find(name);
  if (found == kernels.end()) return kNotFound;
  return *function = &found->second, kSuccess;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  const bool is_fine = is_kernel(function) && attribute == 8 && value <= 227 * 1024;
  return is_fine ? kSuccess : kInvalidValue;
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned shared_bytes, void* stream, void** arguments, void**) {
  const std::lock_guard guard(driver().mutex);
  if (const int result = planned("cuLaunchKernel"); result != kSuccess) return result;
  if (pushed.empty()) return kInvalidContext;
  if (!is_kernel(function) || (stream != nullptr && !driver().streams.contains(stream))) return kInvalidHandle;
  const Kernel kernel = *static_cast<Kernel*>(function);
  std::function<void()> work;
  if (kernel == Kernel::crc32c) {
    using kedge::device::kFoldRing, kedge::device::kFoldStep, kedge::device::kUnitBytes;
    if (shared_bytes != kFoldRing * kUnitBytes || threads != kFoldStep) return kInvalidValue;
    work = checksums(arguments, blocks);
  } else {
    work = [] { driver().lost = kIllegalAddress; };
  }
  driver().given[stream].push_back(std::move(work));
  return kSuccess;
}

int fake_cuda_modules(void) { return driver().modules; }

}  // extern "C"
