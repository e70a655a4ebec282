// What the values of the option start permit.
#pragma once

#include "kedge/options.hpp"

namespace kedge {

/// Whether the start may continue from commits in stores that the prefix has no record of.
[[nodiscard]] constexpr bool adopts(StartMode start) noexcept {
  return start == StartMode::adopt || start == StartMode::adopt_and_accept;
}

/// Whether the start may continue although the fingerprint differs.
[[nodiscard]] constexpr bool accepts(StartMode start) noexcept {
  return start == StartMode::accept || start == StartMode::adopt_and_accept;
}

}  // namespace kedge
