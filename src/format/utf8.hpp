// Names of regions and attributes are UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace kedge::format {

/// A name for use in messages: printable, and short enough to reach the other ranks whole.
[[nodiscard]] std::string shown(std::string_view name);

}  // namespace kedge::format
