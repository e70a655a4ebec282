#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kedge {
namespace {

/// Bytes of the character that `text` begins with; 0 if it is none, or one that a terminal obeys.
std::size_t printable_bytes(std::string_view text) {
  const std::size_t length = utf8_sequence_length(text);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0) >= 0x20 && byte(0) != 0x7F ? 1 : 0;
  const bool control = length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;  // C1
  // U+202A to U+202E and U+2066 to U+2069: they change the direction of what follows.
  const bool direction = length == 3 && byte(0) == 0xE2 &&
                         ((byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) ||
                          (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  return control || direction ? 0 : length;
}

constexpr std::size_t kJobNameBytesMax = 100;
constexpr std::string_view kJobNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-[]";

}  // namespace

std::string human_bytes(std::uint64_t size_bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(size_bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", size_bytes) : fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1.0) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60.0) return fmt::format("{:.2f} s", seconds);
  const auto minutes = static_cast<std::uint64_t>(seconds / 60.0);
  if (minutes < 60) return fmt::format("{} min {:.0f} s", minutes, std::floor(std::fmod(seconds, 60.0)));
  const std::uint64_t hours = minutes / 60;
  if (hours < 48) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} days {} h", hours / 24, hours % 24);
}

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

std::string job_name(std::string_view id) {
  std::string name(id.substr(0, kJobNameBytesMax));
  std::ranges::replace_if(
      name, [](char one) { return kJobNameCharacters.find(one) == std::string_view::npos; }, '_');
  return name;
}

std::size_t utf8_sequence_length(std::string_view text) noexcept {
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

std::string_view truncate_utf8(std::string_view text, std::size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
  while (bytes > 0 && continues(bytes)) --bytes;
  return text.substr(0, bytes);
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace kedge
