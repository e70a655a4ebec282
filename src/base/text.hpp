// Texts: formatted (fmt is included here alone), and numbers, names, commands and job ids as people and shells read
// them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kedge {

/// fmt::format under a name that is not also a room's.
template <class... Arguments>
[[nodiscard]] std::string compose(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fmt::format(text, std::forward<Arguments>(arguments)...);
}

/// "512 B", "1.5 MiB".
[[nodiscard]] std::string human_bytes(std::uint64_t size_bytes);

/// "850 us", "12.3 ms", "1.20 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string human_seconds(double seconds);

/// Control characters and bytes that are not UTF-8 become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// Like printable(), but line breaks stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// Pure. In single quotes, whatever it contains.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// Pure. The text as one word of a shell: in quotes if it needs them.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Pure. The id with `_` in place of what is neither a letter nor a digit nor one of `.-[]`, and cut to 100 characters:
/// the same for the same id wherever it is written and looked for.
[[nodiscard]] std::string job_name(std::string_view id);

/// Bytes of the character that `text` begins with; 0 if they are none: cut short, overlong, a surrogate, or beyond
/// U+10FFFF (Unicode 15, table 3-7).
[[nodiscard]] std::size_t utf8_sequence(std::string_view text) noexcept;

/// Beginning of a text of at most so many bytes, without a part of a character at the end.
[[nodiscard]] std::string_view utf8_truncated(std::string_view text, std::size_t bytes) noexcept;

/// Whether it is made of such characters.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace kedge
