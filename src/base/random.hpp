// Randomness for identities: from the kernel, never from a seed, so two runs cannot draw the same.
#pragma once

#include "kedge/types.hpp"

namespace kedge {

/// Returns 128 bits from getrandom(2), never all zero.
[[nodiscard]] Id128 random_id();

}  // namespace kedge
