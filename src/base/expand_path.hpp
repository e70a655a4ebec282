// Paths in options as people write them: ~ and $NAME.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kedge {

/// Returns `path` with a leading ~ replaced by HOME, and $NAME and ${NAME} by environment variables. Throws
/// Error{invalid_argument} for a variable that is not set, and for ~NAME. Pure.
[[nodiscard]] std::string expand_path(std::string_view path,
                                      const std::function<std::optional<std::string>(const std::string&)>& variable);

/// Whether expand_path() would change the path. Pure.
[[nodiscard]] bool is_expandable(std::string_view path) noexcept;

}  // namespace kedge
