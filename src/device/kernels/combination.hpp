// Sums over GF(2^8) as a device makes them: what the kernel is given.
#pragma once

#include <cstdint>

#include "device/kernels/crc32c_fold.hpp"

namespace kedge::device {

inline constexpr unsigned kInputsMax = 32;
inline constexpr unsigned kOutputsMax = 4;  // redundancy.parity is at most that

struct Input {
  const void* data = nullptr;
  std::uint64_t words = 0;  ///< of 16 bytes
  std::uint8_t coefficient[kOutputsMax] = {};
  std::uint32_t highest_bit = 0;  ///< that any of its coefficients has
};

/// By value: less than 4 KiB.
struct Combination {
  std::uint64_t words = 0;  ///< of 16 bytes, of each output
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  Input input[kInputsMax];
  void* output[kOutputsMax] = {};
};
static_assert(sizeof(Combination) <= 4096);

inline Input input_of(const void* data, std::uint64_t words, const std::uint8_t (&coefficients)[kOutputsMax]) {
  Input input{data, words, {}, 0};
  for (unsigned out = 0; out < kOutputsMax; ++out) {
    input.coefficient[out] = coefficients[out];
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      if ((coefficients[out] >> bit & 1U) != 0 && bit > input.highest_bit) input.highest_bit = bit;
    }
  }
  return input;
}

/// Four numbers of GF(2^8), each times two.
KEDGE_ON_BOTH constexpr std::uint32_t times_two(std::uint32_t four) {
  return ((four << 1U) & 0xfefefefeU) ^ (((four >> 7U) & 0x01010101U) * 0x1dU);
}

}  // namespace kedge::device
