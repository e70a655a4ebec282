// Text from outside (names, paths, what a program gives) as people and terminals can read it.
#pragma once

#include <string>
#include <string_view>

namespace kedge {

/// Control characters and bytes that are not UTF-8 become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// The same of each line of `text`.
[[nodiscard]] std::string printable_lines(std::string_view text);

}  // namespace kedge
