// The functions of kedge/types.hpp, kedge/elements.hpp, kedge/options.hpp and kedge/selection.hpp.
#include "kedge/types.hpp"

#include <charconv>

#include "base/text.hpp"
#include "kedge/elements.hpp"
#include "kedge/options.hpp"
#include "kedge/selection.hpp"

namespace kedge {

std::size_t size_bytes(DataType dtype) noexcept {
  switch (dtype) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::boolean:
    case DataType::opaque:
    case DataType::float8_e4m3fn:
    case DataType::float8_e5m2: return 1;
    case DataType::int16:
    case DataType::uint16:
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
    case DataType::complex64: return 8;
    case DataType::complex128: return 16;
  }
  return 0;
}

std::string_view to_string(RecoverySource source) noexcept {
  switch (source) {
    case RecoverySource::in_place: return "in place";
    case RecoverySource::moved: return "moved";
    case RecoverySource::rebuilt: return "rebuilt";
    case RecoverySource::fetched: return "fetched";
  }
  return "unknown";
}

std::string_view to_string(DataType dtype) noexcept {
  switch (dtype) {
    case DataType::int8: return "int8";
    case DataType::int16: return "int16";
    case DataType::int32: return "int32";
    case DataType::int64: return "int64";
    case DataType::uint8: return "uint8";
    case DataType::uint16: return "uint16";
    case DataType::uint32: return "uint32";
    case DataType::uint64: return "uint64";
    case DataType::float16: return "float16";
    case DataType::bfloat16: return "bfloat16";
    case DataType::float32: return "float32";
    case DataType::float64: return "float64";
    case DataType::complex64: return "complex64";
    case DataType::complex128: return "complex128";
    case DataType::boolean: return "bool";
    case DataType::opaque: return "opaque";
    case DataType::float8_e4m3fn: return "float8_e4m3fn";
    case DataType::float8_e5m2: return "float8_e5m2";
  }
  return "unknown";
}

bool element_count(const Shape& shape, std::uint64_t& count) noexcept {
  count = 1;
  bool empty = false;
  for (const std::uint64_t extent : shape.extents()) empty = empty || extent == 0;
  if (empty) {
    count = 0;
    return true;
  }
  for (const std::uint64_t extent : shape.extents()) {
    if (__builtin_mul_overflow(count, extent, &count)) return false;
  }
  return true;
}

std::string to_string(const Shape& shape) {
  if (shape.dimensions() == 0) return "scalar";
  std::string text;
  for (const std::uint64_t extent : shape.extents()) {
    if (!text.empty()) text += " x ";
    text += std::to_string(extent);
  }
  return text;
}

std::string to_string(const Id128& id) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : id.bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::optional<Id128> parse_id(std::string_view text) noexcept {
  Id128 id;
  if (text.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, id.bytes.at(i), 16);
    if (error != std::errc{} || end != digits + 2) return std::nullopt;
  }
  return id;
}

std::string_view to_string(Scheme scheme) noexcept {
  switch (scheme) {
    case Scheme::automatic: return "auto";
    case Scheme::single: return "single";
    case Scheme::partner: return "partner";
    case Scheme::xor_: return "xor";
    case Scheme::rs: return "rs";
  }
  return "unknown";
}

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::none: return "none";
    case Level::snapshot: return "snapshot";
    case Level::local: return "local";
    case Level::protected_: return "protected";
    case Level::persistent: return "persistent";
  }
  return "unknown";
}

}  // namespace kedge

namespace kedge::detail {

Shape prepend(std::uint64_t first, const Shape& rest) {
  std::array<std::uint64_t, Shape::kMaxDimensions + 1> extents{first};
  for (std::size_t i = 0; i < rest.dimensions(); ++i) extents.at(i + 1) = rest[i];
  return Shape(std::span<const std::uint64_t>(extents.data(), rest.dimensions() + 1));
}

void append_member(std::string& text, std::string_view name, const ElementType& type, std::size_t offset) {
  std::string extents;
  for (const std::uint64_t extent : type.shape.extents())
    extents += compose("{}{}", extents.empty() ? "" : ",", extent);
  if (!extents.empty()) extents = compose("[{}]", extents);
  text += compose("{}{}:{}{}@{}", text.empty() ? "" : ";", name, to_string(type.dtype), extents, offset);
}

}  // namespace kedge::detail
