// Do the blocks that ranks saved make up the global array?
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// One rank's block of a global array. It lies inside of it (format::check of its region saw to that).
struct Block {
  std::uint32_t rank = 0;
  Shape offset;
  Shape shape;
  bool operator==(const Block&) const = default;
};

/// Pure. Whether an array of this shape has any element: a scalar has one.
[[nodiscard]] bool has_elements(const Shape& shape) noexcept;

/// Pure. Nothing if every element lies in exactly one block, or in at most one where holes are allowed; otherwise
/// `mismatch` that names the array and the first element in row-major order that lies in none, or in two and in whose.
/// Blocks without elements count for nothing. Works in time n log n for grids of n blocks, even or not.
[[nodiscard]] std::optional<Failure> check_cover(std::string_view array, const Shape& global_shape,
                                                 std::vector<Block> blocks, bool holes_allowed);

}  // namespace kedge::format
