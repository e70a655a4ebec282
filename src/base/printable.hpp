// Names, paths and other texts of users, written so that a terminal shows them and nothing in them controls it.
#pragma once

#include <string>
#include <string_view>

namespace kedge {

/// Control characters and bytes that are not UTF-8 become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// Like printable(), but line breaks stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

}  // namespace kedge
