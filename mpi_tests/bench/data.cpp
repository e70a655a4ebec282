#include "data.hpp"

namespace kedge_bench {

void fill(std::span<std::uint64_t> words, int rank, std::uint64_t number) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  constexpr std::uint64_t kEveryByte = 0x0101010101010101U;
  // An odd factor of each rank's own: masks that were alike would cancel out in a parity of an even number of ranks.
  const std::uint64_t mask = number * (2 * static_cast<std::uint64_t>(rank) + 1) % 256 * kEveryByte;
  const std::uint64_t begin = (static_cast<std::uint64_t>(rank) + 1) << 40U;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t mixed = (begin + i) * kOdd;
    words[i] = (mixed ^ (mixed >> 29U)) ^ mask;
  }
}

}  // namespace kedge_bench
