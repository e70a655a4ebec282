#include "base/options_values.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kedge {

std::optional<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::array kSuffixes = {
      std::pair{std::string_view("KiB"), 10U}, std::pair{std::string_view("MiB"), 20U},
      std::pair{std::string_view("GiB"), 30U}, std::pair{std::string_view("TiB"), 40U}};
  unsigned shift = 0;
  for (const auto& [suffix, bits] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    shift = bits;
    text.remove_suffix(suffix.size());
    if (text.ends_with(' ')) text.remove_suffix(1);
    break;
  }
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return *number << shift;
}

std::vector<std::string> split_paths(std::string_view text) {
  std::vector<std::string> paths;
  while (!text.empty()) {
    const std::string_view path = text.substr(0, text.find(':'));
    if (!path.empty()) paths.emplace_back(path);
    text.remove_prefix(std::min(path.size() + 1, text.size()));
  }
  return paths;
}

std::string join_paths(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ":") + path;
  return text;
}

}  // namespace kedge
