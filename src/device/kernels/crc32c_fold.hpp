// CRC32C by folding on a device: in steps of many units, between which all threads synchronize.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KEDGE_ON_BOTH __host__ __device__
#else
#define KEDGE_ON_BOTH
#endif

namespace kedge::device {

/// Bytes that a thread reads at once.
inline constexpr unsigned kUnitBytes = 16;
inline constexpr unsigned kUnitWords = kUnitBytes / 4;
// x^5275 + x^4508 + x^2751 + 1 is a multiple of CRC32C's polynomial. So is its 128th power, in which x^128 takes the
// place of x. Hence the units at these distances after a unit of 128 bits can take over its contribution, without
// tables or multiplications.
inline constexpr unsigned kFoldNear = 5275 - 4508;
inline constexpr unsigned kFoldMiddle = 5275 - 2751;
inline constexpr unsigned kFoldFar = 5275;
/// Units of a step, which do not depend on each other.
inline constexpr unsigned kFoldStep = 512;
/// Units in the ring buffer: this step's and the earlier ones that it needs.
inline constexpr unsigned kFoldRing = kFoldFar + kFoldStep;
static_assert(kFoldStep <= kFoldNear);

/// a * b modulo the polynomial; bit 31 is the coefficient of x^0.
KEDGE_ON_BOTH constexpr std::uint32_t multiply_polynomials(std::uint32_t a, std::uint32_t b) {
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
  std::uint32_t square = 0x82f63b78U;  // x^32 modulo the polynomial
  for (; n != 0; n >>= 1U) {
    if ((n & 1U) != 0) result = multiply_polynomials(result, square);
    square = multiply_polynomials(square, square);
  }
  return result;
}

/// Removes trailing zero bytes from the remainder by dividing by x^8 for each.
KEDGE_ON_BOTH constexpr std::uint32_t drop_trailing_zeros(std::uint32_t raw, unsigned bytes) {
  for (unsigned bit = 0; bit < 8 * bytes; ++bit) {
    raw = (raw & 0x80000000U) != 0 ? ((raw ^ 0x82f63b78U) << 1U) | 1U : raw << 1U;
  }
  return raw;
}

}  // namespace kedge::device
