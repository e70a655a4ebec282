#include "pipeline/pause.hpp"

#include <algorithm>
#include <thread>

namespace kedge::pipeline {

void Pause::pass() {
  constexpr std::chrono::milliseconds kLook{1};
  using Clock = std::chrono::steady_clock;
  if (!holds()) return;
  const auto begin = Clock::now();
  while (holds() && Clock::now() - begin < left_) std::this_thread::sleep_for(kLook);
  left_ = std::max(left_ - Seconds(Clock::now() - begin), Seconds(0));
  if (too_long_ && holds() && asked_ && !told_.exchange(true)) too_long_(at_most_);
}

}  // namespace kedge::pipeline
