#include "pipeline/pause.hpp"

#include <algorithm>

namespace kedge::pipeline {

void Pause::pass() {
  using Clock = std::chrono::steady_clock;
  if (!changed_ || !holds()) return;
  waits_ = true;
  while (holds() && left_ > Seconds(0)) {
    const auto begin = Clock::now();
    const bool is_told = changed_->wait(Deadline::after(left_));
    left_ = is_told ? std::max(left_ - Seconds(Clock::now() - begin), Seconds(0)) : Seconds(0);
  }
  waits_ = false;
  if (too_long_ && holds() && asked_ && !told_.exchange(true)) too_long_(at_most_);
}

}  // namespace kedge::pipeline
