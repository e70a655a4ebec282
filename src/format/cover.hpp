// Checks whether the blocks that ranks saved cover a global array.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// One rank's block of a global array, inside the array (format::check made sure).
struct SavedBlock {
  std::uint32_t rank = 0;
  Shape offset;
  Shape shape;
  bool operator==(const SavedBlock&) const = default;
};

/// Pure. Whether an array of this shape has any element; a scalar has one.
[[nodiscard]] bool has_elements(const Shape& shape) noexcept;

/// Pure. Requires that every element is in exactly one block, or in at most one if holes are allowed. Otherwise returns
/// `mismatch` with the array, the first wrong element in row-major order and the ranks whose blocks overlap there.
/// Blocks without elements are ignored. Takes time n log n for grids of n blocks, even or not.
[[nodiscard]] std::optional<Failure> check_cover(std::string_view array, const Shape& global_shape,
                                                 std::vector<SavedBlock> blocks, bool holes_allowed);

}  // namespace kedge::format
