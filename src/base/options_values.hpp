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

/// Pure. Nothing if the text is anything else than one number of this type.
template <class N>
[[nodiscard]] std::optional<N> parse_number(std::string_view text) {
  N value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Pure. Bytes: "4096", "64KiB", "2 GiB"; whole numbers only. Nothing if it is no size.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// Pure. Paths in one text, separated by colons; split leaves empty ones out.
[[nodiscard]] std::vector<std::string> split_paths(std::string_view text);
[[nodiscard]] std::string join_paths(const std::vector<std::string>& paths);

/// Whether the start may continue from commits in stores that the prefix has no record of.
[[nodiscard]] constexpr bool adopts(StartMode start) noexcept {
  return start == StartMode::adopt || start == StartMode::adopt_and_accept;
}

/// Whether the start may continue although the fingerprint differs.
[[nodiscard]] constexpr bool accepts(StartMode start) noexcept {
  return start == StartMode::accept || start == StartMode::adopt_and_accept;
}

}  // namespace kedge
