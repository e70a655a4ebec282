// Common parts of the kernels for x86-64: folding of 128 bits, and the final reduction.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "checksum/fold.hpp"

namespace kedge::checksum {

/// Whether a kernel's stores go through the caches or bypass them.
enum class CacheUse { through_caches, bypass_caches };

#define KEDGE_TARGET_PCLMUL __attribute__((target("sse4.2,pclmul")))

/// Folds `x` by the distance that `factors` are for into `next`.
KEDGE_TARGET_PCLMUL inline __m128i fold(__m128i x, __m128i factors, __m128i next) noexcept {
  const __m128i first = _mm_clmulepi64_si128(x, factors, 0x00);
  const __m128i second = _mm_clmulepi64_si128(x, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

/// Folds into the adjacent 128 bits.
KEDGE_TARGET_PCLMUL inline __m128i fold_into_next(__m128i x, __m128i next) noexcept {
  return fold(x, _mm_set_epi64x(second_factor(128), first_factor(128)), next);
}

/// Reduces the last 128 bits to the CRC32C.
KEDGE_TARGET_PCLMUL inline std::uint32_t reduce_to_crc(__m128i x) noexcept {
  const std::uint64_t half = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_extract_epi64(x, 0)));
  return ~static_cast<std::uint32_t>(_mm_crc32_u64(half, static_cast<std::uint64_t>(_mm_extract_epi64(x, 1))));
}

}  // namespace kedge::checksum
