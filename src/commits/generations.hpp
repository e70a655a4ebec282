// Generations: numbers of commits, each greater than all before.
#pragma once

#include <cstdint>
#include <mutex>

namespace kedge::commits {

/// Every member may be called from any thread. The same on every rank, if every rank makes the same calls.
class Generations {
 public:
  /// One more than all seen; counts as seen from now on. Throws Error{corrupt} if there is none.
  [[nodiscard]] std::uint64_t take();
  /// Generations up to this one are taken.
  void raise(std::uint64_t seen);
  [[nodiscard]] std::uint64_t highest() const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t highest_ = 0;
};

}  // namespace kedge::commits
