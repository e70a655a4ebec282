#include "base/expand_path.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge {
namespace {

bool is_name_start(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_character(char c) noexcept { return is_name_start(c) || (c >= '0' && c <= '9'); }

/// The length of $NAME or ${NAME} at the beginning of `text`; 0 if there is none.
std::size_t reference_length(std::string_view text) noexcept {
  if (text.size() < 2 || text[0] != '$') return 0;
  const bool braced = text[1] == '{';
  std::size_t end = braced ? 2 : 1;
  if (end >= text.size() || !is_name_start(text[end])) return 0;
  while (end < text.size() && is_name_character(text[end])) ++end;
  if (!braced) return end;
  return end < text.size() && text[end] == '}' ? end + 1 : 0;
}

}  // namespace

bool is_expandable(std::string_view path) noexcept {
  if (path.starts_with('~')) return true;
  for (std::size_t at = path.find('$'); at != std::string_view::npos; at = path.find('$', at + 1)) {
    if (reference_length(path.substr(at)) != 0) return true;
  }
  return false;
}

std::string expand_path(std::string_view path,
                        const std::function<std::optional<std::string>(const std::string&)>& variable) {
  const auto value_of = [&](const std::string& name) {
    const auto value = variable(name);
    if (value && !value->empty()) return *value;
    refuse(ErrorCode::invalid_argument,
           compose("the path {} needs the environment variable {}, which is not set", path, name));
  };
  std::string expanded;
  std::string_view rest = path;
  if (rest.starts_with('~')) {
    rest.remove_prefix(1);
    if (!rest.empty() && rest.front() != '/') {
      refuse(ErrorCode::invalid_argument,
             compose("the path {} refers to another user's home directory; write the full path", path));
    }
    expanded = value_of("HOME");
  }
  while (!rest.empty()) {
    const std::size_t length = reference_length(rest);
    if (length == 0) {
      expanded += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    std::string name(rest.substr(1, length - 1));
    if (name.front() == '{') name = name.substr(1, name.size() - 2);
    expanded += value_of(name);
    rest.remove_prefix(length);
  }
  return expanded;
}

}  // namespace kedge
