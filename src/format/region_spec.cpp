#include "format/region_spec.hpp"

#include <cstddef>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "format/members.hpp"
#include "format/on_disk.hpp"

namespace kedge::format {
namespace {

std::string check_region_name(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kNameBytesMax) return kedge::compose("it is longer than {} bytes", kNameBytesMax);
  if (!is_utf8(name)) return "it is not UTF-8";
  if (name.find('\0') != std::string_view::npos) return "it contains a NUL byte";
  std::string_view rest = name;
  for (bool first = true;; first = false) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty()) return "it has an empty part";
    if (part == "." || part == "..") return "it has a part '.' or '..'";
    if (first && (part == ".kedge" || part == "ranks")) return kedge::compose("'{}' is reserved", part);
    if (part.size() == rest.size()) return {};
    rest.remove_prefix(part.size() + 1);
  }
}

bool is_size_possible(DataType dtype, const Shape& shape) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t count = 0;
  return element_count(shape, count) && count <= kMax / kedge::size_bytes(dtype);
}

std::string check_shard(const RegionSpec& spec, const Shard& shard) {
  const Shape& global = shard.global_shape;
  if (global.too_long() || global.dimensions() != spec.shape.dimensions() || shard.offset.too_long() ||
      shard.offset.dimensions() != spec.shape.dimensions()) {
    return kedge::compose("shape ({}), global shape ({}) and offset ({}) have different numbers of dimensions",
                          to_string(spec.shape), to_string(global), to_string(shard.offset));
  }
  if (!is_size_possible(spec.dtype, global))
    return kedge::compose("the global shape ({}) is too large", to_string(global));
  for (std::size_t i = 0; i < global.dimensions(); ++i) {
    if (shard.offset[i] > global[i] || spec.shape[i] > global[i] - shard.offset[i]) {
      return kedge::compose("in dimension {} it starts at {} and has {} elements, but the global array has {}", i,
                            shard.offset[i], spec.shape[i], global[i]);
    }
  }
  return {};
}

/// A shard must consist of whole structs.
std::string check_struct(const RegionSpec& spec) {
  if (spec.members.empty()) return {};
  const std::size_t last = spec.shape.dimensions();
  if (spec.dtype != DataType::opaque || last == 0 || spec.shape[last - 1] == 0 || spec.is_routed) {
    return "only opaque regions whose last extent is the size of a struct can have members";
  }
  const auto* shard = std::get_if<Shard>(&spec.placement);
  if (shard != nullptr && shard->global_shape[last - 1] != spec.shape[last - 1]) {
    return "its last extent is the size of a struct, and that of the global array is not";
  }
  return check_members(spec.members, spec.shape[last - 1]);
}

}  // namespace

std::uint64_t region_size_bytes(const RegionSpec& spec) noexcept {
  std::uint64_t count = 0;
  return element_count(spec.shape, count) ? count * kedge::size_bytes(spec.dtype) : 0;
}

RegionSpec make_empty_directory(std::string name) {
  return {std::move(name), DataType::opaque, Shape{0, 0}, {}, true};  // a file has one extent
}

bool is_empty_directory(const RegionSpec& spec) noexcept { return spec.is_routed && spec.shape.dimensions() == 2; }

bool is_attributes_region(const RegionSpec& spec) {
  return spec.name == kAttributesName && spec.dtype == DataType::opaque && spec.shape.dimensions() == 1 &&
         std::holds_alternative<std::monostate>(spec.placement) && !spec.is_routed;
}

std::optional<Failure> check_region_spec(const RegionSpec& spec) {
  const auto refused = [](std::string message) { return Failure{ErrorCode::invalid_argument, std::move(message)}; };
  if (const std::string problem = is_attributes_region(spec) ? "" : check_region_name(spec.name); !problem.empty()) {
    return refused(kedge::compose("invalid region name '{}': {}", printable_name(spec.name), problem));
  }
  if (kedge::size_bytes(spec.dtype) == 0) {
    return refused(kedge::compose("dtype of region '{}' is not a kedge::DataType", spec.name));
  }
  if (spec.shape.too_long()) {
    return refused(
        kedge::compose("shape of region '{}' has more than {} dimensions", spec.name, Shape::kMaxDimensions));
  }
  if (!is_size_possible(spec.dtype, spec.shape)) {
    return refused(kedge::compose("shape of region '{}' ({}) is too large", spec.name, to_string(spec.shape)));
  }
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    const std::string problem = check_shard(spec, *shard);
    if (!problem.empty()) return refused(kedge::compose("shard of region '{}' does not fit: {}", spec.name, problem));
  }
  if (const std::string problem = check_struct(spec); !problem.empty()) {
    return refused(kedge::compose("members of region '{}' cannot be used: {}", spec.name, problem));
  }
  return std::nullopt;
}

std::string printable_name(std::string_view name) {
  constexpr std::size_t kShownBytes = 128;
  std::string text = printable(name);
  return text.size() <= kShownBytes ? text : std::string(truncate_utf8(text, kShownBytes)) + "...";
}

}  // namespace kedge::format
