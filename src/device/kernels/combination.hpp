// Arguments of the kernels that compute sums over GF(2^8).
#pragma once

#include <cstdint>

namespace kedge::device {

inline constexpr unsigned kInputsMax = 32;
inline constexpr unsigned kOutputsMax = 4;  // the maximum of redundancy.parity

/// Products of one coefficient with a number's lowest three bits, next three and highest two: 8 bytes each, the first
/// product in the lowest bits.
struct Products {
  std::uint64_t of_bits[3] = {};
};

struct Input {
  const void* data = nullptr;
  std::uint64_t words = 0;  ///< of 16 bytes
};

/// Passed by value, so limited to 4 KiB.
struct Combination {
  std::uint64_t words = 0;  ///< of 16 bytes, in each output
  std::uint32_t inputs = 0;
  Input input[kInputsMax];
  Products products[kInputsMax][kOutputsMax];
  void* output[kOutputsMax] = {};
};
static_assert(sizeof(Combination) <= 4096);

/// Product in GF(2^8) with polynomial 0x11d.
constexpr std::uint8_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; b != 0; b >>= 1U) {
    if ((b & 1U) != 0) sum ^= a;
    a = (a << 1U) ^ ((a & 0x80U) != 0 ? 0x11dU : 0);
  }
  return static_cast<std::uint8_t>(sum);
}

constexpr Products products_of(std::uint8_t coefficient) {
  Products products;
  for (unsigned part = 0; part < 3; ++part) {
    for (std::uint64_t bits = 0; bits < (part == 2 ? 4U : 8U); ++bits) {
      products.of_bits[part] |= std::uint64_t{product(static_cast<std::uint32_t>(bits << (3 * part)), coefficient)}
                                << (8 * bits);
    }
  }
  return products;
}

}  // namespace kedge::device
