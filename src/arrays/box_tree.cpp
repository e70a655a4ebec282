#include "arrays/box_tree.hpp"

#include <algorithm>
#include <limits>

namespace kedge::arrays {

BoxTree::BoxTree(std::span<const Box> boxes) : boxes_(boxes) {
  invariant(boxes.size() < std::numeric_limits<std::uint32_t>::max(), "boxes of a tree are counted in 32 bits");
  order_.reserve(boxes.size());
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    if (volume(boxes[i]) > 0) order_.push_back(i);
  }
  nodes_.reserve(order_.size());
  if (!order_.empty()) build(0, static_cast<std::uint32_t>(order_.size()));
}

void BoxTree::build(std::uint32_t first, std::uint32_t last) {
  const std::size_t number = nodes_.size();
  const std::span<std::uint32_t> order = std::span(order_).subspan(first, last - first);
  nodes_.push_back({boxes_[order.front()], first, last, 0});
  Point lowest_begin = boxes_[order.front()].begin;
  Point highest_begin = lowest_begin;
  Box& bounds = nodes_.back().bounds;
  for (const std::uint32_t i : order) {
    for (std::size_t d = 0; d < bounds.dimensions; ++d) {
      bounds.begin[d] = std::min(bounds.begin[d], boxes_[i].begin[d]);
      bounds.end[d] = std::max(bounds.end[d], boxes_[i].end[d]);
      highest_begin[d] = std::max(highest_begin[d], boxes_[i].begin[d]);
    }
  }
  lowest_begin = bounds.begin;
  if (order.size() <= kBoxesInLeaf) return;
  // By the beginnings: how far they are spread, counted in boxes of the usual size, is not known; elements serve.
  std::size_t side = 0;
  for (std::size_t d = 1; d < bounds.dimensions; ++d) {
    if (highest_begin[d] - lowest_begin[d] > highest_begin[side] - lowest_begin[side]) side = d;
  }
  const std::uint32_t middle = first + (last - first) / 2;
  std::ranges::nth_element(order, order.begin() + (middle - first), {},
                           [&](std::uint32_t i) { return boxes_[i].begin[side]; });
  build(first, middle);
  nodes_[number].right = static_cast<std::uint32_t>(nodes_.size());
  build(middle, last);
}

}  // namespace kedge::arrays
