#include "base/printable.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/text.hpp"

namespace kedge {
namespace {

bool goes_on(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the character that `text` begins with, 0 if it is none that can be printed.
std::size_t printable_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  std::uint32_t point = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!goes_on(text[i])) return 0;
    point = point << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const bool overlong = point < (length == 2 ? 0x80U : length == 3 ? 0x800U : 0x10000U);
  const bool control = point < 0xA0;  // C1: a terminal obeys these too
  const bool direction = (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return overlong || control || direction || surrogate || point > 0x10FFFF ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = printable_bytes(text);
    if (length == 0) {
      out += compose("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace kedge
