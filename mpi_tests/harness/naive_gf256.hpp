// Reed-Solomon's arithmetic as the format describes it, for tests to compare with. Nothing of the codec is used here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kedge {

/// The product in GF(2^8) with the polynomial 0x11d, bit by bit.
inline std::byte times(std::uint8_t coefficient, std::byte byte) {
  unsigned product = 0;
  auto factor = std::to_integer<unsigned>(byte);
  for (unsigned bits = coefficient; bits != 0; bits >>= 1U) {
    if ((bits & 1U) != 0) product ^= factor;
    factor = (factor << 1U) ^ ((factor & 0x80U) != 0 ? 0x11dU : 0U);
  }
  return static_cast<std::byte>(product);
}

}  // namespace kedge
