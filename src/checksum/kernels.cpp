#include "checksum/kernels.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace kedge::checksum {
namespace {

#if defined(__x86_64__)
using AllKernels = std::array<Kernel, 4>;
AllKernels all_kernels() { return {avx512_kernel(), avx2_kernel(), pclmul_kernel(), plain_kernel()}; }
#elif defined(__aarch64__) && defined(__linux__)
using All = std::array<Kernel, 2>;
All all() { return {arm_kernel(), plain_kernel()}; }
#else
using All = std::array<Kernel, 1>;
All all() { return {plain_kernel()}; }
#endif

const Kernel& best_kernel() {
  const auto supported = kernels();
  if (const char* asked = std::getenv("KEDGE_TEST_CHECKSUM"); asked != nullptr) {
    const auto named = std::ranges::find(supported, std::string_view(asked), &Kernel::name);
    if (named != supported.end() && named->is_supported) return *named;
  }
  return *std::ranges::find(supported, true, &Kernel::is_supported);
}

}  // namespace

std::span<const Kernel> kernels() noexcept {
  static const AllKernels table = all_kernels();
  return table;
}

const Kernel& kernel() noexcept {
  static const Kernel& chosen = best_kernel();
  return chosen;
}

}  // namespace kedge::checksum
