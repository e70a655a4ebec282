#include "data.hpp"

namespace kedge_bench {
namespace {

/// From the word at this place of some sequence on.
void fill_sequence(std::span<std::uint64_t> words, std::uint64_t begin, std::uint64_t mask) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t mixed = (begin + i) * kOdd;
    words[i] = (mixed ^ (mixed >> 29U)) ^ mask;
  }
}

std::uint64_t mask_of(std::uint64_t number) {
  constexpr std::uint64_t kEveryByte = 0x0101010101010101U;
  return number % 256 * kEveryByte;
}

}  // namespace

void fill(std::span<std::uint64_t> words, int rank, std::uint64_t number) {
  const auto own = static_cast<std::uint64_t>(rank);
  // An odd factor of each rank's own: masks that were alike would cancel out in a parity of an even number of ranks.
  fill_sequence(words, (own + 1) << 40U, mask_of(number * (2 * own + 1)));
}

void fill_from(std::uint64_t first, std::span<std::uint64_t> words, std::uint64_t number) {
  fill_sequence(words, first, mask_of(number));
}

}  // namespace kedge_bench
