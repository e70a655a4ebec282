// The kernel that computes checksums on a GPU.
#include <cstdint>

#include "device/kernels/crc32c_fold.hpp"

#ifndef KEDGE_DYNAMIC_SHARED  // a test's is of another kind
#define KEDGE_DYNAMIC_SHARED(type, name, size) extern __shared__ type name[]
#endif

namespace {

using kedge::device::kFoldFar;
using kedge::device::kFoldMiddle;
using kedge::device::kFoldNear;
using kedge::device::kFoldRing;
using kedge::device::kFoldStep;
using kedge::device::kUnitBytes;
using kedge::device::kUnitWords;
using kedge::device::multiply_polynomials;
using kedge::device::power_of_word;
using kedge::device::drop_trailing_zeros;

constexpr unsigned kThreads = kFoldStep;  // a unit each, at a step
constexpr unsigned kAhead = 4;            // steps whose units are on their way while one is folded

/// x^(32 n) for what a thread may be away from the end.
struct WordPowers {
  std::uint32_t of[kUnitWords * kFoldStep + 1];
};
constexpr WordPowers powers() {
  WordPowers all{};
  all.of[0] = power_of_word(0);
  const std::uint32_t word = power_of_word(1);
  for (unsigned n = 1; n <= kUnitWords * kFoldStep; ++n) all.of[n] = multiply_polynomials(all.of[n - 1], word);
  return all;
}
__device__ const WordPowers kPowers = powers();

/// Products of each byte of a word and x^(128 kFoldStep).
struct StepProducts {
  std::uint32_t of[4][256];
};
constexpr StepProducts step_products() {
  StepProducts all{};
  const std::uint32_t power = power_of_word(kUnitWords * kFoldStep);
  for (unsigned byte = 0; byte < 4; ++byte) {
    for (std::uint32_t value = 0; value < 256; ++value) {
      all.of[byte][value] = multiply_polynomials(value << (8 * byte), power);
    }
  }
  return all;
}
__device__ const StepProducts kStepProducts = step_products();

__device__ __forceinline__ std::uint32_t times_step(std::uint32_t word) {
  return kStepProducts.of[0][word & 0xffU] ^ kStepProducts.of[1][word >> 8U & 0xffU] ^
         kStepProducts.of[2][word >> 16U & 0xffU] ^ kStepProducts.of[3][word >> 24U];
}

__device__ __forceinline__ uint4 sum(uint4 a, uint4 b) { return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w}; }

/// Reads no byte that is not asked for.
template <bool is_aligned>
__device__ __forceinline__ uint4 load(const std::uint8_t* data, std::uint32_t unit, std::uint64_t size_bytes) {
  const std::uint64_t begin = std::uint64_t{unit} * kUnitBytes;
  const bool is_whole = begin + kUnitBytes <= size_bytes;
  if (is_aligned && is_whole) return __ldcs(reinterpret_cast<const uint4*>(data + begin));
  if (is_whole && reinterpret_cast<std::uintptr_t>(data) % 4 == 0) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(data + begin);
    return {words[0], words[1], words[2], words[3]};
  }
  std::uint32_t words[kUnitWords] = {};
#pragma unroll
  for (unsigned i = 0; i < kUnitBytes; ++i) {
    if (begin + i < size_bytes) words[i / 4] |= static_cast<std::uint32_t>(data[begin + i]) << (8 * (i % 4));
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Index in the ring, `units` before `at`.
__device__ __forceinline__ unsigned before(unsigned at, unsigned units) {
  return at >= units ? at - units : at + kFoldRing - units;
}

/// Unit n, which is at `at` of the ring, with all that former ones have handed on: of these only the first
/// `folded_units` do.
__device__ __forceinline__ uint4 folded(const uint4* ring, unsigned at, uint4 unit, std::uint32_t n,
                                        std::uint32_t folded_units) {
  // Before the first, the ring is zero.
  if (n < folded_units + kFoldNear) unit = sum(unit, ring[before(at, kFoldNear)]);
  if (n < folded_units + kFoldMiddle) unit = sum(unit, ring[before(at, kFoldMiddle)]);
  return sum(unit, ring[before(at, kFoldFar)]);
}

/// Remainder of the piece after folding, as one word: the threads' sum.
__device__ std::uint32_t sum_of_rest(const uint4* ring, std::uint32_t units, std::uint32_t folded_units) {
  __shared__ std::uint32_t sums[32];
  std::uint32_t total = 0;
  if (std::uint32_t n = folded_units + threadIdx.x; n < units) {
    const auto words_at = [&](std::uint32_t unit) {
      return reinterpret_cast<const std::uint32_t*>(&ring[unit % kFoldRing]);
    };
    std::uint32_t own[kUnitWords];
    for (unsigned k = 0; k < kUnitWords; ++k) own[k] = words_at(n)[k];
    for (; n + kFoldStep < units; n += kFoldStep) {
      for (unsigned k = 0; k < kUnitWords; ++k) own[k] = times_step(own[k]) ^ words_at(n + kFoldStep)[k];
    }
    const std::uint32_t words_left = (units - n) * kUnitWords;
    for (unsigned k = 0; k < kUnitWords; ++k) total ^= multiply_polynomials(own[k], kPowers.of[words_left - k]);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) total ^= __shfl_xor_sync(0xffffffffU, total, lanes);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = total;
  __syncthreads();
  total = threadIdx.x < kThreads / 32 ? sums[threadIdx.x] : 0;
  for (int lanes = 16; lanes > 0; lanes /= 2) total ^= __shfl_xor_sync(0xffffffffU, total, lanes);
  return total;
}

/// One piece by one block of threads: less than 64 GiB.
template <bool is_aligned>
__device__ std::uint32_t checksum(uint4* ring, const std::uint8_t* data, std::uint64_t size_bytes) {
  const auto units = static_cast<std::uint32_t>((size_bytes + kUnitBytes - 1) / kUnitBytes);
  const std::uint32_t folded_units = units > kFoldFar ? units - kFoldFar : 0;
  const auto take = [&](std::uint32_t n) { return n < units ? load<is_aligned>(data, n, size_bytes) : uint4{}; };
  uint4 ahead[kAhead];
#pragma unroll
  for (unsigned i = 0; i < kAhead; ++i) ahead[i] = take(i * kFoldStep + threadIdx.x);
  for (unsigned i = threadIdx.x; i < kFoldRing; i += kThreads) ring[i] = uint4{};
  __syncthreads();
  unsigned at = threadIdx.x;
  for (std::uint32_t begin = 0; begin < units; begin += kAhead * kFoldStep) {
#pragma unroll
    for (unsigned i = 0; i < kAhead; ++i) {
      const std::uint32_t n = begin + i * kFoldStep + threadIdx.x;
      const uint4 unit = ahead[i];
      ahead[i] = take(n + kAhead * kFoldStep);
      if (n < units) ring[at] = folded(ring, at, unit, n, folded_units);
      at = at + kFoldStep >= kFoldRing ? at + kFoldStep - kFoldRing : at + kFoldStep;
      __syncthreads();
    }
  }
  const auto zeros = static_cast<unsigned>(std::uint64_t{units} * kUnitBytes - size_bytes);
  return drop_trailing_zeros(sum_of_rest(ring, units, folded_units), zeros);
}

}  // namespace

extern "C" {

/// Remainder of each piece of `piece_bytes` (the last may have fewer), which crc32c_of_raw() makes its CRC32C. Grid:
/// pieces; block: exactly kFoldStep threads, with kFoldRing units of dynamic shared memory.
__global__ void __launch_bounds__(kThreads, 2)
    kedge_crc32c(const std::uint8_t* data, std::uint64_t size_bytes, std::uint64_t piece_bytes, std::uint32_t* raw) {
  KEDGE_DYNAMIC_SHARED(uint4, ring, kFoldRing);
  const std::uint64_t begin = blockIdx.x * piece_bytes;
  const std::uint64_t length = size_bytes - begin < piece_bytes ? size_bytes - begin : piece_bytes;
  const std::uint8_t* piece = data + begin;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(piece) % kUnitBytes == 0;
  const std::uint32_t sum = is_aligned ? checksum<true>(ring, piece, length) : checksum<false>(ring, piece, length);
  if (threadIdx.x == 0) raw[blockIdx.x] = sum;
}
}
