// Longer timeouts for work that moves or reads many bytes.
#pragma once

#include <cstdint>

namespace kedge::pipeline {

/// Pure. Factor for comm.timeout_s: 1, plus 1 for each GiB, since one slow link may carry all of it.
[[nodiscard]] constexpr double timeout_factor(std::uint64_t bytes) noexcept {
  constexpr double kBytesPerTimeout = 1U << 30U;
  return 1 + static_cast<double>(bytes) / kBytesPerTimeout;
}

}  // namespace kedge::pipeline
