// Text formatting for the whole house: fmt is included here alone.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace kedge {

/// fmt::format under a name that is not also a room's.
template <class... Arguments>
[[nodiscard]] std::string compose(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fmt::format(text, std::forward<Arguments>(arguments)...);
}

}  // namespace kedge
