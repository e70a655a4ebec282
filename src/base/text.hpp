// Text formatting for the whole house: fmt is included here alone.
#pragma once

#include <fmt/format.h>

namespace kedge {
using fmt::format;
}  // namespace kedge
