// CRC32C of many bytes at a time, by folding with carry-less multiplication.
//
// A CRC is the remainder of the message, as a polynomial over GF(2), modulo P. 128 bits that stand D bits ahead of
// others weigh x^D times as much. Multiplying them by x^D mod P and adding (XOR) the product to those others therefore
// leaves the remainder as it was. Each 64-bit half is multiplied by a 32-bit constant of its own, because the first
// half stands 64 bits further ahead. The processor's crc32 instruction reduces the last 128 bits. (V. Gopal and others,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.)
//
// CRC32C reflects bits: the lowest bit of a word is the highest power. The reflected product of 64 and 32 bits is 33
// bits short of 128, and the constants make up for that.
#pragma once

#include <cstdint>

namespace kedge::checksum {

/// CRC32C's polynomial, reflected: bit 31 is x^0.
inline constexpr std::uint32_t kPolynomial = 0x82f63b78U;

/// x^n modulo kPolynomial, reflected.
constexpr std::uint32_t power_of_x(unsigned n) noexcept {
  std::uint32_t power = 0x80000000U;
  for (; n != 0; --n) power = (power >> 1U) ^ ((power & 1U) != 0 ? kPolynomial : 0);
  return power;
}

/// Returns the multiplier of the first half of 128 bits, to fold it into the bits that stand `bits` later.
constexpr std::int64_t first_factor(unsigned bits) noexcept { return power_of_x(bits + 64 - 33); }
/// Returns the multiplier of the second half of 128 bits.
constexpr std::int64_t second_factor(unsigned bits) noexcept { return power_of_x(bits - 33); }

}  // namespace kedge::checksum
