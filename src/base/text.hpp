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

/// Formats as fmt::format does; `format` is the name of a room.
template <class... Arguments>
[[nodiscard]] std::string compose(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fmt::format(text, std::forward<Arguments>(arguments)...);
}

/// Returns a size for people: "512 B", "1.5 MiB".
[[nodiscard]] std::string human_bytes(std::uint64_t size_bytes);

/// Returns a duration for people: "850 us", "12.3 ms", "1.20 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string human_seconds(double seconds);

/// Returns the text with control characters, and bytes that are not UTF-8, as \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// Returns the text as printable() does, but keeps line breaks.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// Returns the text in single quotes, which are escaped in it. Pure.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// Returns the text as one word of a shell: in quotes if it needs them. Pure.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Returns a batch system's job id as a part of file names: `_` replaces every character but letters, digits and
/// `.-[]`, and only the first 100 characters are kept. Pure.
[[nodiscard]] std::string job_name(std::string_view id);

/// Returns the number of bytes of the text's first character; 0 if they are invalid: cut short, overlong, a surrogate,
/// or beyond U+10FFFF (Unicode 15, table 3-7).
[[nodiscard]] std::size_t utf8_sequence_length(std::string_view text) noexcept;

/// Returns the beginning of the text, of at most `bytes` bytes, without a part of a character at the end.
[[nodiscard]] std::string_view truncate_utf8(std::string_view text, std::size_t bytes) noexcept;

/// Whether the text is valid UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace kedge
