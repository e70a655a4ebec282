// How much longer than comm.timeout_s ranks wait for work that moves or reads many bytes.
#pragma once

#include <cstdint>

namespace kedge::pipeline {

/// Pure. How many times the timeout: once more for each GiB, since all of it may go through one slow link.
[[nodiscard]] constexpr double timeouts_for(std::uint64_t bytes) noexcept {
  constexpr double kBytesPerTimeout = 1U << 30U;
  return 1 + static_cast<double>(bytes) / kBytesPerTimeout;
}

}  // namespace kedge::pipeline
