#include "format/region_spec.hpp"

#include <limits>

#include "base/text.hpp"
#include "format/on_disk.hpp"

namespace kedge::format {
namespace {

// Length of the UTF-8 sequence at the front, 0 if it is none (overlong forms, surrogates and beyond U+10FFFF count
// as none; Unicode 15, table 3-7).
std::size_t utf8_sequence(std::string_view text) {
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string name_problem(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kNameBytesMax) return kedge::compose("it is longer than {} bytes", kNameBytesMax);
  if (!is_utf8(name)) return "it is not UTF-8";
  if (name.find('\0') != std::string_view::npos) return "it contains a zero byte";
  std::string_view rest = name;
  for (bool first = true;; first = false) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty()) return "it has an empty part between slashes";
    if (part == "." || part == "..") return "it has a part '.' or '..'";
    if (first && (part == ".kedge" || part == "ranks")) return kedge::compose("'{}' is kept for Kedge itself", part);
    if (part.size() == rest.size()) return {};
    rest.remove_prefix(part.size() + 1);
  }
}

/// The name as a message shows it: readable, and short enough to reach the other ranks whole.
std::string shown(std::string_view name) {
  constexpr std::size_t kShownBytes = 128;
  if (!is_utf8(name)) return "?";
  if (name.size() <= kShownBytes) return std::string(name);
  std::size_t end = kShownBytes;
  while ((static_cast<unsigned char>(name[end]) & 0xc0U) == 0x80U) --end;
  return std::string(name.substr(0, end)) + "...";
}

bool fits(DataType dtype, const Shape& shape) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t count = 0;
  return element_count(shape, count) && count <= kMax / kedge::size_bytes(dtype);
}

std::string shard_problem(const RegionSpec& spec, const Shard& shard) {
  const Shape& global = shard.global_shape;
  if (global.too_long() || global.dimensions() != spec.shape.dimensions() || shard.offset.too_long() ||
      shard.offset.dimensions() != spec.shape.dimensions()) {
    return kedge::compose("shape ({}), global shape ({}) and offset ({}) have different numbers of dimensions",
                          to_string(spec.shape), to_string(global), to_string(shard.offset));
  }
  if (!fits(spec.dtype, global)) return kedge::compose("the global shape ({}) is too large", to_string(global));
  for (std::size_t i = 0; i < global.dimensions(); ++i) {
    if (shard.offset[i] > global[i] || spec.shape[i] > global[i] - shard.offset[i]) {
      return kedge::compose("in dimension {} it reaches from {} over {} elements, the global array has {}", i,
                            shard.offset[i], spec.shape[i], global[i]);
    }
  }
  return {};
}

}  // namespace

std::uint64_t size_bytes(const RegionSpec& spec) noexcept {
  std::uint64_t count = 0;
  return element_count(spec.shape, count) ? count * kedge::size_bytes(spec.dtype) : 0;
}

std::optional<Failure> check(const RegionSpec& spec) {
  const auto refused = [](std::string message) {
    return Failure{ErrorCode::invalid_argument, std::move(message), -1, {}, 0};
  };
  if (const std::string problem = name_problem(spec.name); !problem.empty()) {
    return refused(kedge::compose("region name '{}' cannot be used: {}", shown(spec.name), problem));
  }
  if (kedge::size_bytes(spec.dtype) == 0) {
    return refused(kedge::compose("dtype of region '{}' is no kedge::DataType", spec.name));
  }
  if (spec.shape.too_long()) {
    return refused(
        kedge::compose("shape of region '{}' has more than {} dimensions", spec.name, Shape::kMaxDimensions));
  }
  if (!fits(spec.dtype, spec.shape)) {
    return refused(kedge::compose("shape of region '{}' ({}) is too large", spec.name, to_string(spec.shape)));
  }
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    const std::string problem = shard_problem(spec, *shard);
    if (!problem.empty()) return refused(kedge::compose("shard of region '{}' does not fit: {}", spec.name, problem));
  }
  return std::nullopt;
}

}  // namespace kedge::format
