#include "pipeline/pause.hpp"

#include <algorithm>

namespace kedge::pipeline {
namespace {

/// True as long as it lives.
class Said {
 public:
  explicit Said(std::atomic<bool>& flag) noexcept : flag_(flag) { flag_ = true; }
  ~Said() { flag_ = false; }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

void Pause::pass() {
  using Clock = std::chrono::steady_clock;
  if (!changed_ || !holds()) return;
  const Said said(waits_);
  while (holds() && left_ > Seconds(0)) {
    const auto begin = Clock::now();
    const bool is_told = changed_->wait(Deadline::after(left_));
    left_ = is_told ? std::max(left_ - Seconds(Clock::now() - begin), Seconds(0)) : Seconds(0);
  }
  if (too_long_ && holds() && asked_ && !told_.exchange(true)) too_long_(at_most_);
}

}  // namespace kedge::pipeline
