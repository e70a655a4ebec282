// CRC32C by folding, as it is done on a device: in steps of many words at once, between which all threads meet.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KEDGE_ON_BOTH __host__ __device__
#else
#define KEDGE_ON_BOTH
#endif

namespace kedge::device {

// x^5321 + x^3574 + x^2491 + 1 is a multiple of CRC32C's polynomial, and with it the same of x^32: what a word of 32
// bits contributes, the words so many places after it may contribute instead. No tables, no multiplications.
inline constexpr unsigned kFoldNear = 5321 - 3574;
inline constexpr unsigned kFoldMiddle = 5321 - 2491;
inline constexpr unsigned kFoldFar = 5321;
/// Of words that are folded: what a step needs of former ones, and the step's own.
inline constexpr unsigned kFoldRing = 8192;
/// Words of a step: none needs another of the same step.
inline constexpr unsigned kFoldStep = 1024;
static_assert(kFoldStep <= kFoldNear && kFoldFar + kFoldStep <= kFoldRing);

/// Word `n`, with all that former ones have handed on: of these only the first `folded_words` do.
KEDGE_ON_BOTH inline std::uint32_t folded(const std::uint32_t* ring, std::uint32_t word, std::uint64_t n,
                                          std::uint64_t folded_words) {
  const auto at = [&](unsigned back) -> std::uint32_t {
    return n >= back && n - back < folded_words ? ring[(n - back) % kFoldRing] : 0;
  };
  return word ^ at(kFoldNear) ^ at(kFoldMiddle) ^ at(kFoldFar);
}

/// a * b modulo the polynomial; bit 31 is the coefficient of 1.
KEDGE_ON_BOTH constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int i = 0; i < 32; ++i) {
    product ^= (a & 0x80000000U) != 0 ? b : 0;
    a <<= 1U;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? 0x82f63b78U : 0);
  }
  return product;
}

/// x^(32 n) modulo the polynomial.
KEDGE_ON_BOTH constexpr std::uint32_t power_of_word(std::uint64_t n) {
  std::uint32_t result = 0x80000000U;  // 1
  std::uint32_t square = 0x82f63b78U;  // x^32: what the polynomial has beside it
  for (; n != 0; n >>= 1U) {
    if ((n & 1U) != 0) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

}  // namespace kedge::device
