// One pass over bytes, as this processor does it best: copied or combined, and folded into a checksum on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checksum/prefetch.hpp"

namespace kedge::checksum {

/// Least size of a call to a kernel, and its granularity: four vectors of the widest.
inline constexpr std::size_t kStepBytes = 256;

/// Where the bytes are that a pass combines, or copies if there is one source.
using Sources = std::span<const std::byte* const>;

/// Writes `size` bytes, the XOR of all sources, to `to`, and updates `crc` with them. `size` is a multiple of
/// kStepBytes, and not 0. A source may be `to`.
using Pass = std::uint32_t (*)(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept;

struct Kernel {
  const char* name = "";
  bool is_supported = false;  ///< by this processor
  Pass copy = nullptr;        ///< of one source; what is written stays in the caches
  Pass stream = nullptr;  ///< past the caches, whole lines: `to` lies on one; ordered before what this thread does next
  Pass combine = nullptr;  ///< of several sources, in the caches
  Pass combine_and_stream = nullptr;
};

/// All of this architecture, best first; the last is supported everywhere.
[[nodiscard]] std::span<const Kernel> kernels() noexcept;

/// The first that is supported. For tests: the one that the environment names in KEDGE_TEST_CHECKSUM, if it is.
[[nodiscard]] const Kernel& kernel() noexcept;

// Their factories. Those of other architectures are not defined.
[[nodiscard]] Kernel avx512_kernel() noexcept;
[[nodiscard]] Kernel avx2_kernel() noexcept;
[[nodiscard]] Kernel pclmul_kernel() noexcept;
[[nodiscard]] Kernel arm_kernel() noexcept;
[[nodiscard]] Kernel plain_kernel() noexcept;

}  // namespace kedge::checksum
