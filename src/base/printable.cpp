#include "base/printable.hpp"

#include <algorithm>
#include <cstddef>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace kedge {
namespace {

/// Bytes of the character that `text` begins with; 0 if it is none, or one that a terminal obeys.
std::size_t printable_bytes(std::string_view text) {
  const std::size_t length = utf8_sequence(text);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0) >= 0x20 && byte(0) != 0x7F ? 1 : 0;
  const bool control = length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;  // C1
  // U+202A to U+202E and U+2066 to U+2069: they change the direction of what follows.
  const bool direction = length == 3 && byte(0) == 0xE2 &&
                         ((byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) ||
                          (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  return control || direction ? 0 : length;
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
