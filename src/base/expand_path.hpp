// Paths in options as people write them: ~ and $NAME.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kedge {

/// Pure. `path` with a ~ at its beginning replaced by HOME, and $NAME and ${NAME} by variables of the environment.
/// Throws Error{invalid_argument} for one that is not set, and for ~NAME.
[[nodiscard]] std::string expand_path(std::string_view path,
                                      const std::function<std::optional<std::string>(const std::string&)>& variable);

/// Pure. Whether expand_path would change it.
[[nodiscard]] bool is_expandable(std::string_view path) noexcept;

}  // namespace kedge
