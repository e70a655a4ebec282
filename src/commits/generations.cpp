#include "commits/generations.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::commits {

std::uint64_t Generations::take_next() {
  const std::lock_guard guard(mutex_);
  if (highest_ >= kGenerationMax) {
    throw Error(
        ErrorCode::corrupt,
        compose(
            "the generation {} was seen in the stores or on the prefix, and no higher one is possible: the file that "
            "has it must be damaged; find it with kedge ls, remove it, and start again",
            highest_));
  }
  return ++highest_;
}

void Generations::raise_to(std::uint64_t seen) {
  const std::lock_guard guard(mutex_);
  highest_ = std::max(highest_, seen);
}

std::uint64_t Generations::highest() const {
  const std::lock_guard guard(mutex_);
  return highest_;
}

}  // namespace kedge::commits
