// Texts that programs give are UTF-8, but for paths, which are what the system takes.
#pragma once

#include <string_view>

namespace kedge {

/// Well-formed as in Unicode 15, table 3-7.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace kedge
