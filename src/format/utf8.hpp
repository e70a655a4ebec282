// Names of regions and attributes are UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace kedge::format {

/// Well-formed as in Unicode 15, table 3-7.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// A name as a message shows it: readable, and short enough to reach the other ranks whole.
[[nodiscard]] std::string shown(std::string_view name);

}  // namespace kedge::format
