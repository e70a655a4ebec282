// How much longer than comm.timeout_s ranks wait for work that moves or reads many bytes.
#pragma once

#include <cstdint>

namespace kedge::pipeline {

/// Pure. What to multiply comm.timeout_s by: 1, and 1 more for each GiB, as all of it may go through one slow link.
[[nodiscard]] constexpr double timeout_factor(std::uint64_t bytes) noexcept {
  constexpr double kBytesPerTimeout = 1U << 30U;
  return 1 + static_cast<double>(bytes) / kBytesPerTimeout;
}

}  // namespace kedge::pipeline
