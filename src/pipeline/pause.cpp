#include "pipeline/pause.hpp"

#include <algorithm>
#include <thread>

namespace kedge::pipeline {

void Pause::pass() noexcept {
  constexpr std::chrono::milliseconds kLook{1};
  using Clock = std::chrono::steady_clock;
  if (!holds()) return;
  const auto begin = Clock::now();
  while (holds() && Clock::now() - begin < left_) std::this_thread::sleep_for(kLook);
  left_ = std::max(left_ - Seconds(Clock::now() - begin), Seconds(0));
}

}  // namespace kedge::pipeline
