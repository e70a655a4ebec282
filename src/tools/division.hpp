// Pure. How ranks divided a global array, as a person would say it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "arrays/box.hpp"
#include "kedge/types.hpp"

namespace kedge::tools {

/// A block that a rank saved, with at least one element.
struct SavedBlock {
  std::uint32_t rank = 0;
  arrays::Box box;
};

struct Division {
  std::string words;  ///< e.g. "8 blocks of 40 rows"
  /// Indexes of two blocks that have an element in common.
  std::optional<std::pair<std::size_t, std::size_t>> overlap;
  /// The first element in no block, and how many there are if none overlap.
  std::optional<arrays::Point> hole;
  std::uint64_t missing = 0;
};

/// The blocks are all that there are, or, of an array that is not complete here, some: then no hole is looked for.
[[nodiscard]] Division describe_division(const Shape& global_shape, std::span<const SavedBlock> blocks,
                                         bool is_complete);

/// Indices such as "(0, 40)".
[[nodiscard]] std::string indices_text(const arrays::Point& point, std::size_t dimensions);

}  // namespace kedge::tools
