// What a GPU computes. Inputs and outputs do not overlap.
#include <cstdint>

#include "device/kernels/combination.hpp"
#include "device/kernels/crc32c_fold.hpp"

namespace {

using kedge::device::folded;
using kedge::device::kFoldFar;
using kedge::device::kFoldRing;
using kedge::device::kFoldStep;
using kedge::device::multiply;
using kedge::device::power_of_word;
using kedge::device::times_two;

constexpr unsigned kThreads = 512;
constexpr unsigned kEach = kFoldStep / kThreads;  // words of a step
constexpr unsigned kAhead = 4;                    // steps whose words are on their way while one is folded

/// x^(32 n) for what a thread may be away from the end.
struct Powers {
  std::uint32_t of[kFoldStep + 1];
};
constexpr Powers powers() {
  Powers all{};
  all.of[0] = power_of_word(0);
  const std::uint32_t word = power_of_word(1);
  for (unsigned n = 1; n <= kFoldStep; ++n) all.of[n] = multiply(all.of[n - 1], word);
  return all;
}
__device__ const Powers kPowers = powers();
__device__ const std::uint32_t kPowerOfStep = power_of_word(kFoldStep);

/// Bytes 4 n - pad to 4 n - pad + 3; those before the first are zero. Reads no word of which no byte is asked for.
__device__ std::uint32_t load(const std::uint8_t* data, std::uint64_t n, unsigned pad) {
  if (n == 0 && pad != 0) {
    std::uint32_t word = 0;
    for (unsigned i = pad; i < 4; ++i) word |= static_cast<std::uint32_t>(data[i - pad]) << (8 * i);
    return word;
  }
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(data) + 4 * n - pad;
  const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const unsigned shift = 8 * static_cast<unsigned>(address & 3U);
  return shift == 0 ? __ldg(words) : __funnelshift_r(__ldg(words), __ldg(words + 1), shift);
}

/// Faster where the words of the padded piece are aligned to 4.
__device__ void store(std::uint8_t* data, std::uint64_t n, unsigned pad, std::uint32_t word) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(data) + 4 * n - pad;
  if (address % 4 == 0 && (n != 0 || pad == 0)) {
    *reinterpret_cast<std::uint32_t*>(address) = word;
    return;
  }
  for (unsigned i = n == 0 ? pad : 0; i < 4; ++i) {
    reinterpret_cast<std::uint8_t*>(address)[i] = static_cast<std::uint8_t>(word >> (8 * i));
  }
}

/// What of the piece is left after folding, as one word: the threads' sum.
__device__ std::uint32_t sum_of_rest(const std::uint32_t* ring, std::uint64_t words, std::uint64_t folded_words) {
  __shared__ std::uint32_t sums[32];
  std::uint32_t sum = 0;
  for (unsigned each = threadIdx.x; each < kFoldStep; each += kThreads) {
    std::uint64_t n = folded_words / kFoldStep * kFoldStep + each;
    if (n < folded_words) n += kFoldStep;
    if (n >= words) continue;
    std::uint32_t own = ring[n % kFoldRing];
    for (; n + kFoldStep < words; n += kFoldStep) {
      own = multiply(own, kPowerOfStep) ^ ring[(n + kFoldStep) % kFoldRing];
    }
    sum ^= multiply(own, kPowers.of[words - n]);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) sum ^= __shfl_xor_sync(0xffffffffU, sum, lanes);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = threadIdx.x < kThreads / 32 ? sums[threadIdx.x] : 0;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum ^= __shfl_xor_sync(0xffffffffU, sum, lanes);
  return sum;
}

/// One piece by one block of threads. `copy` may be null.
__device__ std::uint32_t checksum(const std::uint8_t* data, std::uint64_t size_bytes, std::uint8_t* copy) {
  __shared__ std::uint32_t ring[kFoldRing];
  const std::uint64_t words = (size_bytes + 3) / 4;
  const std::uint64_t folded_words = words > kFoldFar ? words - kFoldFar : 0;
  const auto pad = static_cast<unsigned>(4 * words - size_bytes);
  const auto take = [&](std::uint64_t n) { return n < words ? load(data, n, pad) : 0; };
  std::uint32_t ahead[kAhead * kEach];
#pragma unroll
  for (unsigned i = 0; i < kAhead * kEach; ++i) ahead[i] = take(std::uint64_t{i} * kThreads + threadIdx.x);
  for (std::uint64_t begin = 0; begin < words; begin += kAhead * kFoldStep) {
#pragma unroll
    for (unsigned i = 0; i < kAhead * kEach; ++i) {
      const std::uint64_t n = begin + i * kThreads + threadIdx.x;
      const std::uint32_t word = ahead[i];
      ahead[i] = take(n + kAhead * kFoldStep);
      if (n < words) {
        if (copy != nullptr) store(copy, n, pad, word);
        ring[n % kFoldRing] = folded(ring, word, n, folded_words);
      }
      if (i % kEach == kEach - 1) __syncthreads();
    }
  }
  return sum_of_rest(ring, words, folded_words);
}

}  // namespace

extern "C" {

/// Of each piece of `piece_bytes` (the last may have fewer) what crc32c_of_raw() makes its CRC32C. Grid: pieces; block:
/// exactly kThreads threads. If `copy` is not null, the bytes also go there.
__global__ void __launch_bounds__(kThreads, 2)
    kedge_crc32c(const std::uint8_t* data, std::uint64_t size_bytes, std::uint64_t piece_bytes, std::uint8_t* copy,
                 std::uint32_t* raw) {
  const std::uint64_t begin = blockIdx.x * piece_bytes;
  const std::uint64_t length = size_bytes - begin < piece_bytes ? size_bytes - begin : piece_bytes;
  const std::uint32_t sum = checksum(data + begin, length, copy == nullptr ? nullptr : copy + begin);
  if (threadIdx.x == 0) raw[blockIdx.x] = sum;
}

/// Every output is the sum of all inputs times their coefficients in GF(2^8), polynomial 0x11d; with coefficients of 1,
/// their XOR. By 16 bytes, to which all are aligned. An input may be shorter, and is continued with zeros.
__global__ void kedge_combine(kedge::device::Combination what) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < what.words; i += step) {
    uint4 sums[kedge::device::kOutputsMax] = {};
    for (unsigned k = 0; k < what.inputs; ++k) {
      const kedge::device::Input& input = what.input[k];
      if (i >= input.words) continue;
      uint4 power = __ldg(static_cast<const uint4*>(input.data) + i);
      // Bit by bit of the coefficients, which all threads share: no branch of theirs differs.
      for (unsigned bit = 0;; ++bit) {
#pragma unroll
        for (unsigned out = 0; out < kedge::device::kOutputsMax; ++out) {
          const std::uint32_t mask = 0U - ((input.coefficient[out] >> bit) & 1U);
          sums[out].x ^= power.x & mask;
          sums[out].y ^= power.y & mask;
          sums[out].z ^= power.z & mask;
          sums[out].w ^= power.w & mask;
        }
        if (input.highest_bit == bit) break;
        power = {times_two(power.x), times_two(power.y), times_two(power.z), times_two(power.w)};
      }
    }
#pragma unroll
    for (unsigned out = 0; out < kedge::device::kOutputsMax; ++out) {
      if (out < what.outputs) static_cast<uint4*>(what.output[out])[i] = sums[out];
    }
  }
}
}
