#include "format/utf8.hpp"

#include <cstddef>

#include "base/printable.hpp"

namespace kedge::format {

std::string shown(std::string_view name) {
  constexpr std::size_t kShownBytes = 128;
  std::string text = printable(name);
  if (text.size() <= kShownBytes) return text;
  std::size_t end = kShownBytes;
  while ((static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

}  // namespace kedge::format
