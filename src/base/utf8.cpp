#include "base/utf8.hpp"

namespace kedge {

std::size_t utf8_sequence(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80U) return 1;
  if (lead >= 0xc2U && lead <= 0xdfU) return tail(1) ? 2 : 0;
  if (lead >= 0xe0U && lead <= 0xefU) {
    const bool overlong = lead == 0xe0U && byte(1) < 0xa0U;
    const bool surrogate = lead == 0xedU && byte(1) > 0x9fU;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0U && lead <= 0xf4U) {
    const bool overlong = lead == 0xf0U && byte(1) < 0x90U;
    const bool beyond = lead == 0xf4U && byte(1) > 0x8fU;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string_view utf8_truncated(std::string_view text, std::size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
  while (bytes > 0 && continues(bytes)) --bytes;
  return text.substr(0, bytes);
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace kedge
