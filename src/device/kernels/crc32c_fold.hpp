// CRC32C by folding, as it is done on a device: in steps of many units at once, between which all threads meet.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KEDGE_ON_BOTH __host__ __device__
#else
#define KEDGE_ON_BOTH
#endif

namespace kedge::device {

/// Bytes that a thread takes at once.
inline constexpr unsigned kUnitBytes = 16;
inline constexpr unsigned kUnitWords = kUnitBytes / 4;
// x^5275 + x^4508 + x^2751 + 1 is a multiple of CRC32C's polynomial, and with it the same of x^128, its power of 2^7:
// what a unit of 128 bits contributes, the units so many places after it may contribute instead. No tables, no
// multiplications.
inline constexpr unsigned kFoldNear = 5275 - 4508;
inline constexpr unsigned kFoldMiddle = 5275 - 2751;
inline constexpr unsigned kFoldFar = 5275;
/// Units of a step: none needs another of the same step.
inline constexpr unsigned kFoldStep = 512;
/// Units in the ring: those of former steps that a step needs, and the step's own.
inline constexpr unsigned kFoldRing = kFoldFar + kFoldStep;
static_assert(kFoldStep <= kFoldNear);

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

/// Removes trailing zero bytes from the remainder: divides by x^8 for each of them.
KEDGE_ON_BOTH constexpr std::uint32_t without_zeros(std::uint32_t raw, unsigned bytes) {
  for (unsigned bit = 0; bit < 8 * bytes; ++bit) {
    raw = (raw & 0x80000000U) != 0 ? ((raw ^ 0x82f63b78U) << 1U) | 1U : raw << 1U;
  }
  return raw;
}

}  // namespace kedge::device
