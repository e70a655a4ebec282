// Choices that a seed makes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace kedge::faults {

class RandomChoices {
 public:
  explicit RandomChoices(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return random_() % end; }
  [[nodiscard]] int int_below(int end) { return static_cast<int>(below(static_cast<std::uint64_t>(end))); }
  [[nodiscard]] bool one_in(std::uint64_t n) { return below(n) == 0; }
  /// Which must not be empty. Named twice it is drawn twice as often.
  template <class T>
  [[nodiscard]] T one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }
  /// For std::shuffle.
  [[nodiscard]] std::mt19937_64& generator() { return random_; }

 private:
  std::mt19937_64 random_;
};

}  // namespace kedge::faults
