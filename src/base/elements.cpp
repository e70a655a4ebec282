#include "kedge/elements.hpp"

#include "base/text.hpp"

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
