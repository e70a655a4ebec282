#include "arrays/tiles.hpp"

#include <algorithm>

#include "base/hash.hpp"

namespace kedge::arrays {

Tiles::Tiles(const Shape& global_shape, std::uint64_t logical_ranks, std::uint64_t processes)
    : whole_(box_of(global_shape)) {
  const auto extents = global_shape.extents();
  if (std::ranges::find(extents, 0U) != extents.end() || extents.empty()) return;
  side_ = static_cast<std::uint32_t>(std::ranges::max_element(extents) - extents.begin());
  const std::uint64_t most = std::max<std::uint64_t>(1, std::min(processes, logical_ranks / kRanksPerTile));
  width_ = (extents[side_] - 1) / most + 1;
  count_ = (extents[side_] - 1) / width_ + 1;
}

Tiles::Range Tiles::of(const Box& box) const noexcept {
  if (count_ == 1 || volume(box) == 0) return {0, 0};
  return {box.begin[side_] / width_, (box.end[side_] - 1) / width_};
}

Box Tiles::tile(std::uint64_t number) const noexcept {
  Box tile = whole_;
  if (count_ == 1) return tile;
  tile.begin[side_] = number * width_;
  if (number + 1 < count_) tile.end[side_] = (number + 1) * width_;
  return tile;
}

int home_of(std::string_view name, std::uint64_t tile, std::uint64_t processes) noexcept {
  return static_cast<int>((fnv1a(name) % processes + tile) % processes);
}

}  // namespace kedge::arrays
