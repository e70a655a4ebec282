#include "persist/record_json.hpp"

#include <charconv>
#include <cstddef>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace kedge::persist {

std::optional<std::string> text_in(const Json& content, const char* key) {
  if (!content.contains(key) || !content[key].is_string()) return std::nullopt;
  return content[key].get<std::string>();
}

Json bytes_json(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string hex;
  for (const char c : bytes) hex += compose("{:02x}", static_cast<unsigned char>(c));
  return {{"hex", hex}};
}

std::optional<std::string> bytes_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return std::nullopt;
  const std::string hex = text_in(value, "hex").value_or("");
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    const char* end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, byte, 16).ptr != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string bytes_in(const Json& content, const char* key) {
  return content.contains(key) ? bytes_of(content[key]).value_or("") : "";
}

}  // namespace kedge::persist
