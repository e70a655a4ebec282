// Texts that programs give are UTF-8, but for paths, which are what the system takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace kedge {

/// Bytes of the character that `text` begins with; 0 if they are none: cut short, overlong, a surrogate, or beyond
/// U+10FFFF (Unicode 15, table 3-7).
[[nodiscard]] std::size_t utf8_sequence(std::string_view text) noexcept;

/// Beginning of a text of at most so many bytes, without a part of a character at the end.
[[nodiscard]] std::string_view utf8_truncated(std::string_view text, std::size_t bytes) noexcept;

/// Whether it is made of such characters.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace kedge
