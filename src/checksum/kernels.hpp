// The fastest kernels of this processor, which copy or XOR bytes and compute their CRC32C in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checksum/prefetch.hpp"

namespace kedge::checksum {

/// A kernel's size is a multiple of this: four vectors of the widest kernel.
inline constexpr std::size_t kStepBytes = 256;

/// The bytes that a pass combines by XOR; a single source is copied.
using Sources = std::span<const std::byte* const>;

/// Writes `size` bytes, the XOR of all sources, to `to` and continues `crc` with them. `size` is a positive multiple of
/// kStepBytes. A source may be `to`.
using Pass = std::uint32_t (*)(std::byte* to, Sources from, std::size_t size, std::uint32_t crc) noexcept;

struct Kernel {
  const char* name = "";
  bool is_supported = false;  ///< this processor has the instructions
  Pass copy = nullptr;        ///< one source, through the caches
  Pass stream = nullptr;      ///< one source, past the caches; `to` is aligned to a line; fenced at the end
  Pass combine = nullptr;     ///< several sources, through the caches
  Pass combine_and_stream = nullptr;
};

/// Returns all kernels of this architecture, fastest first; the last one runs on every processor.
[[nodiscard]] std::span<const Kernel> kernels() noexcept;

/// Returns the first supported kernel. Tests can name another supported one in KEDGE_TEST_CHECKSUM.
[[nodiscard]] const Kernel& kernel() noexcept;

// Factories; those of other architectures are not defined.
[[nodiscard]] Kernel avx512_kernel() noexcept;
[[nodiscard]] Kernel avx2_kernel() noexcept;
[[nodiscard]] Kernel pclmul_kernel() noexcept;
[[nodiscard]] Kernel arm_kernel() noexcept;
[[nodiscard]] Kernel plain_kernel() noexcept;

}  // namespace kedge::checksum
