// How a CRC32C is taken of many bytes at a time: folding by carry-less multiplication.
//
// A CRC is the remainder of the message, as a polynomial over GF(2), modulo P. 128 bits of a message that stand D bits
// before others weigh x^D times as much; so they may be taken away from where they are, multiplied by x^D mod P, and
// added (XOR) to the 128 bits that stand D bits later: the remainder is the same. Multiplied are the two halves of 64
// bits, each by a constant of 32: the first one stands 64 bits further ahead. What is left at the end, 128 bits, is
// reduced by the processor's crc32 instruction.
// (V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.)
//
// Bits are reflected, as CRC32C has them: the lowest bit of a word is the highest power. The reflected product of 64
// and 32 bits comes out 33 bits short of the 128 that it is read as: the constants make up for that.
#pragma once

#include <cstdint>

namespace kedge::checksum {

/// CRC32C's polynomial, reflected: bit 31 is x^0.
inline constexpr std::uint32_t kPolynomial = 0x82f63b78U;

/// x^n modulo that, reflected, too.
constexpr std::uint32_t power_of_x(unsigned n) noexcept {
  std::uint32_t power = 0x80000000U;
  for (; n != 0; --n) power = (power >> 1U) ^ ((power & 1U) != 0 ? kPolynomial : 0);
  return power;
}

/// By what the first half of 128 bits is multiplied to be folded into those that stand `bits` later.
constexpr std::int64_t first_factor(unsigned bits) noexcept { return power_of_x(bits + 64 - 33); }
/// By what the second half is.
constexpr std::int64_t second_factor(unsigned bits) noexcept { return power_of_x(bits - 33); }

}  // namespace kedge::checksum
