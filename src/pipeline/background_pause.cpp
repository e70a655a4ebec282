#include "pipeline/background_pause.hpp"

#include <algorithm>

namespace kedge::pipeline {

void BackgroundPause::wait_while_paused() {
  if (!wake_signal_ || !must_pause()) return;
  is_waiting_ = true;
  while (must_pause() && remaining_time() > Seconds(0)) {
    const auto begin = Clock::now();
    const bool was_asked = is_requested_;  // otherwise a new request begins now
    const Deadline limit = Deadline::after(remaining_time());
    const bool is_told = wake_signal_->wait(limit);
    const Seconds paused_time = Clock::now() - begin;
    paused_time_ = paused_time_.load() + paused_time;
    if (!is_told) abandoned_guard_since_ = guarded_since_;
    const Seconds waited = paused_time - Seconds(limit.stopped_s());  // a suspended job stops the others, too
    if (was_asked) remaining_time_ = is_told ? std::max(remaining_time_ - waited, Seconds(0)) : Seconds(0);
  }
  is_waiting_ = false;
  // A request that was just made is not over.
  const bool is_over = must_pause() && is_requested_ && remaining_time_ <= Seconds(0);
  if (on_too_long_ && is_over && !has_reported_.exchange(true)) on_too_long_(paused_time_max_);
}

BackgroundPause::Seconds BackgroundPause::remaining_time() const noexcept {
  const Clock::time_point since = guarded_since_;
  const bool is_held = guard_count_ != 0 && since != abandoned_guard_since_;
  const Seconds of_hold = is_held ? paused_time_max_ - Seconds(Clock::now() - since) : Seconds(0);
  return is_requested_ ? std::max(remaining_time_, of_hold) : of_hold;
}

}  // namespace kedge::pipeline
