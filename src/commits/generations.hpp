// Generations: numbers of commits, each greater than all before.
#pragma once

#include <cstdint>
#include <mutex>

namespace kedge::commits {

/// Hands out generations. Thread-safe. Equal on every rank, if every rank makes the same calls.
class Generations {
 public:
  /// Returns one more than the highest generation, which it then is. Throws Error{corrupt} if there is none.
  [[nodiscard]] std::uint64_t take_next();
  /// Makes `seen` the highest generation, unless a higher one was taken.
  void raise_to(std::uint64_t seen);
  [[nodiscard]] std::uint64_t highest() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t highest_ = 0;
};

}  // namespace kedge::commits
