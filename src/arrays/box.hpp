// Boxes of a global array: where blocks lie, what two of them share, and which elements are in none. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kedge/types.hpp"

namespace kedge::arrays {

/// Indices of an element, slowest dimension first; those beyond the dimensions are 0. Compares in row-major order.
using Point = std::array<std::uint64_t, Shape::kMaxDimensions>;

/// All elements from `begin` up to, and without, `end`, in each dimension. One of no dimensions is a scalar.
struct Box {
  Point begin{};
  Point end{};
  std::uint32_t dimensions = 0;
  bool operator==(const Box&) const = default;
};

/// The box of this shape at `offset`, which must have as many dimensions; the sums must fit in 64 bits.
[[nodiscard]] Box box_at(const Shape& offset, const Shape& shape);
/// The box of this shape at the origin.
[[nodiscard]] Box box_of(const Shape& shape);

[[nodiscard]] Shape offset_of(const Box& box);
[[nodiscard]] Shape shape_of(const Box& box);
/// How many elements: 1 for a scalar. Must fit in 64 bits.
[[nodiscard]] std::uint64_t volume(const Box& box) noexcept;
[[nodiscard]] bool contains(const Box& outer, const Box& inner) noexcept;
/// Whether the two, which have as many dimensions, have an element in common.
[[nodiscard]] bool overlap(const Box& a, const Box& b) noexcept;
/// The elements in both; only for boxes that overlap.
[[nodiscard]] Box intersection(const Box& a, const Box& b) noexcept;

/// The first element of `whole`, in row-major order, that lies in none of `parts`. For the message of a failure: takes
/// a time that grows with the square of their number, less for grids.
[[nodiscard]] std::optional<Point> first_element_in_none(const Box& whole, std::span<const Box> parts);

}  // namespace kedge::arrays
