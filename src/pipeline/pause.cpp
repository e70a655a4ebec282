#include "pipeline/pause.hpp"

#include <algorithm>

namespace kedge::pipeline {

void Pause::pass() {
  if (!changed_ || !holds()) return;
  waits_ = true;
  while (holds() && left() > Seconds(0)) {
    const auto begin = Clock::now();
    const bool was_asked = asked_;  // otherwise a new request begins now
    const Deadline limit = Deadline::after(left());
    const bool is_told = changed_->wait(limit);
    const Seconds paused_time = Clock::now() - begin;
    paused_time_ = paused_time_.load() + paused_time;
    if (!is_told) gave_up_on_ = held_since_;
    const Seconds waited = paused_time - Seconds(limit.stopped_s());  // a suspended job stops the others, too
    if (was_asked) left_ = is_told ? std::max(left_ - waited, Seconds(0)) : Seconds(0);
  }
  waits_ = false;
  // A request that was just made is not over.
  const bool is_over = holds() && asked_ && left_ <= Seconds(0);
  if (too_long_ && is_over && !has_reported_.exchange(true)) too_long_(at_most_);
}

Pause::Seconds Pause::left() const noexcept {
  const Clock::time_point since = held_since_;
  const bool is_held = held_ != 0 && since != gave_up_on_;
  const Seconds of_hold = is_held ? at_most_ - Seconds(Clock::now() - since) : Seconds(0);
  return asked_ ? std::max(left_, of_hold) : of_hold;
}

}  // namespace kedge::pipeline
