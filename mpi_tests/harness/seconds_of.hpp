// How long a step takes, for bounds that a hang would exceed.
#pragma once

#include <chrono>

namespace kedge::faults {

template <class Step>
[[nodiscard]] double seconds_of(Step&& step) {
  const auto begin = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace kedge::faults
