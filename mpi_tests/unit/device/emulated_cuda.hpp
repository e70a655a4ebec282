// Enough of CUDA's language to run kernels on the processor: a block's threads are threads, and meet in barriers.
#pragma once

#include <array>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

// NOLINTBEGIN: the names are CUDA's
struct uint4 {
  std::uint32_t x, y, z, w;
};
struct Index3 {
  unsigned x = 0;
};

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline
#define KEDGE_DYNAMIC_SHARED(type, name, size) static type name[size]

namespace emulated {
inline thread_local std::barrier<>* barrier = nullptr;
inline std::array<std::uint32_t, 1024> lanes{};
}  // namespace emulated

inline thread_local Index3 threadIdx;
inline thread_local Index3 blockIdx;
inline Index3 blockDim;
inline Index3 gridDim;

inline void __syncthreads() { emulated::barrier->arrive_and_wait(); }

/// All threads of the block must call it together, which is more than CUDA asks for.
inline std::uint32_t __shfl_xor_sync(std::uint32_t, std::uint32_t value, int lane_mask) {
  emulated::lanes[threadIdx.x] = value;
  __syncthreads();
  const std::uint32_t other = emulated::lanes[threadIdx.x ^ static_cast<unsigned>(lane_mask)];
  __syncthreads();
  return other;
}

template <class T>
T __ldcs(const T* at) {
  return *at;
}

/// Byte k of the result is that of `low` and `high` which half byte k of the selector counts.
inline std::uint32_t __byte_perm(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = (std::uint64_t{high} << 32U) | low;
  std::uint32_t result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    result |= static_cast<std::uint32_t>((bytes >> (8 * ((selector >> (4 * k)) & 7U))) & 0xffU) << (8 * k);
  }
  return result;
}
// NOLINTEND

namespace emulated {

/// Runs kernel() by each of `threads` threads of each of `blocks` blocks, one block after the other.
template <class Kernel>
void launch(unsigned blocks, unsigned threads, Kernel&& kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  std::barrier<> meeting(threads);
  std::vector<std::jthread> all;
  for (unsigned thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      barrier = &meeting;
      threadIdx.x = thread;
      for (unsigned block = 0; block < blocks; ++block) {
        blockIdx.x = block;
        kernel();
        __syncthreads();
      }
    });
  }
}

}  // namespace emulated
