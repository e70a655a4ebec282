#include "arrays/box.hpp"

#include <algorithm>
#include <vector>

#include "base/invariant.hpp"

namespace kedge::arrays {
namespace {

/// Tries the elements that begin with the first `d` indices of `at`, which lie in all of `parts`. Between two
/// neighbouring bounds of parts all indices are alike, so the first of them stands for all.
std::optional<Point> find_hole(const Box& whole, const std::vector<const Box*>& parts, std::size_t d, Point at) {
  if (d == whole.dimensions) return parts.empty() ? std::optional(at) : std::nullopt;
  std::vector<std::uint64_t> bounds = {whole.begin[d]};
  for (const Box* part : parts) {
    for (const std::uint64_t bound : {part->begin[d], part->end[d]}) {
      if (bound > whole.begin[d] && bound < whole.end[d]) bounds.push_back(bound);
    }
  }
  std::ranges::sort(bounds);
  const auto repeated = std::ranges::unique(bounds);
  bounds.erase(repeated.begin(), repeated.end());
  std::vector<const Box*> here;
  for (const std::uint64_t bound : bounds) {
    at[d] = bound;
    here.clear();
    for (const Box* part : parts) {
      if (part->begin[d] <= bound && bound < part->end[d]) here.push_back(part);
    }
    if (auto hole = find_hole(whole, here, d + 1, at)) return hole;
  }
  return std::nullopt;
}

}  // namespace

Box box_at(const Shape& offset, const Shape& shape) {
  invariant(offset.dimensions() == shape.dimensions(), "a box has as many offsets as extents");
  Box box;
  box.dimensions = static_cast<std::uint32_t>(shape.dimensions());
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    box.begin[d] = offset[d];
    box.end[d] = offset[d] + shape[d];
  }
  return box;
}

Box box_of(const Shape& shape) {
  const Point origin{};
  return box_at(Shape(std::span(origin).first(shape.dimensions())), shape);
}

Shape offset_of(const Box& box) { return Shape(std::span(box.begin).first(box.dimensions)); }

Shape shape_of(const Box& box) {
  Point extents{};
  for (std::size_t d = 0; d < box.dimensions; ++d) extents[d] = box.end[d] - box.begin[d];
  return Shape(std::span<const std::uint64_t>(extents).first(box.dimensions));
}

std::uint64_t volume(const Box& box) noexcept {
  std::uint64_t product = 1;
  for (std::size_t d = 0; d < box.dimensions; ++d) product *= box.end[d] - box.begin[d];
  return product;
}

bool contains(const Box& outer, const Box& inner) noexcept {
  for (std::size_t d = 0; d < outer.dimensions; ++d) {
    if (inner.begin[d] < outer.begin[d] || inner.end[d] > outer.end[d]) return false;
  }
  return outer.dimensions == inner.dimensions;
}

bool overlap(const Box& a, const Box& b) noexcept {
  for (std::size_t d = 0; d < a.dimensions; ++d) {
    if (std::max(a.begin[d], b.begin[d]) >= std::min(a.end[d], b.end[d])) return false;
  }
  return true;
}

Box intersection(const Box& a, const Box& b) noexcept {
  Box both;
  both.dimensions = a.dimensions;
  for (std::size_t d = 0; d < a.dimensions; ++d) {
    both.begin[d] = std::max(a.begin[d], b.begin[d]);
    both.end[d] = std::min(a.end[d], b.end[d]);
  }
  return both;
}

std::optional<Point> first_element_in_none(const Box& whole, std::span<const Box> parts) {
  if (volume(whole) == 0) return std::nullopt;
  std::vector<const Box*> all;
  for (const Box& part : parts) {
    if (overlap(whole, part)) all.push_back(&part);
  }
  return find_hole(whole, all, 0, Point{});
}

}  // namespace kedge::arrays
