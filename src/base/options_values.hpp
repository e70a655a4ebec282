// Values of options as text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/options.hpp"

namespace kedge {

/// Parses one number of this type; returns nothing if the text is invalid. Pure.
template <class N>
[[nodiscard]] std::optional<N> parse_number(std::string_view text) {
  N value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Parses a number of bytes: "4096", "64KiB", "2 GiB"; whole numbers only. Returns nothing if the text is invalid.
/// Pure.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// Splits paths separated by colons, without empty ones. Pure.
[[nodiscard]] std::vector<std::string> split_paths(std::string_view text);
/// Joins paths with colons. Pure.
[[nodiscard]] std::string join_paths(const std::vector<std::string>& paths);

/// Whether a start may continue from commits in stores that the prefix has no record of.
[[nodiscard]] constexpr bool permits_adoption(StartMode start) noexcept {
  return start == StartMode::adopt || start == StartMode::adopt_and_accept;
}

/// Whether a start may continue although the fingerprint differs.
[[nodiscard]] constexpr bool permits_other_fingerprint(StartMode start) noexcept {
  return start == StartMode::accept || start == StartMode::adopt_and_accept;
}

}  // namespace kedge
