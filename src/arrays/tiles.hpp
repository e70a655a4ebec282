// Which processes are in charge of a global array: it is cut into tiles along its longest side, each with a home
// process that follows from the array's name and the tile, so that an array of very many shards has many homes and none
// of them knows all shards. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "arrays/box.hpp"

namespace kedge::arrays {

/// How many of the job's logical ranks share a tile of an array at least.
inline constexpr std::uint64_t kRanksPerTile = 64;

/// The tiles of one array: as many as there are processes or kRanksPerTile-ths of the logical ranks that saved it,
/// whichever is less, and at least one. Scalars and arrays without elements have one.
class Tiles {
 public:
  /// Of an array of this shape, which `logical_ranks` ranks saved and `processes` are in charge of.
  Tiles(const Shape& global_shape, std::uint64_t logical_ranks, std::uint64_t processes);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// The tiles that have elements of a box; only the first tile for a box without elements. The box lies in the array.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  ///< included
  };
  [[nodiscard]] Range of(const Box& box) const noexcept;
  /// The part of the array that is this tile.
  [[nodiscard]] Box tile(std::uint64_t number) const noexcept;

 private:
  Box whole_;
  std::uint32_t side_ = 0;
  std::uint64_t width_ = 1;
  std::uint64_t count_ = 1;
};

/// The process in charge of this tile of what has this name.
[[nodiscard]] int home_of(std::string_view name, std::uint64_t tile, std::uint64_t processes) noexcept;

}  // namespace kedge::arrays
