#include "base/shell_word.hpp"

namespace kedge {

std::string in_quotes(std::string_view text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-@";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos;
  return is_plain ? std::string(text) : in_quotes(text);
}

}  // namespace kedge
