// Finds the boxes that a box overlaps, among very many. A tree in which each node knows the bounds of what is below it,
// made by halving the boxes again and again along the side on which they are spread most: for n boxes that do not
// overlap, k of which are found, O(log n + k), whether they are a grid or of all sizes. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arrays/box.hpp"
#include "base/invariant.hpp"

namespace kedge::arrays {

class BoxTree {
 public:
  /// Boxes of as many dimensions each, which must outlive the tree; those without elements are never found.
  explicit BoxTree(std::span<const Box> boxes);

  /// visit(position among the boxes) for each that has an element in common with this one.
  template <class Visit>
  void for_each_overlap(const Box& box, Visit&& visit) const {
    std::array<std::uint32_t, kDepthMax> open{};
    std::size_t count = 0;
    if (!nodes_.empty()) open[count++] = 0;
    while (count > 0) {
      const Node& node = nodes_[open[--count]];
      if (!overlap(node.bounds, box)) continue;
      if (node.right == 0) {
        for (std::uint32_t i = node.first; i < node.last; ++i) {
          if (overlap(boxes_[order_[i]], box)) visit(order_[i]);
        }
        continue;
      }
      invariant(count + 2 <= open.size(), "halving so often leaves one box");
      open[count++] = node.right;
      open[count++] = static_cast<std::uint32_t>(&node - nodes_.data()) + 1;
    }
  }

 private:
  static constexpr std::size_t kDepthMax = 72;
  static constexpr std::size_t kBoxesInLeaf = 4;
  struct Node {
    Box bounds;
    std::uint32_t first = 0;  ///< in order_
    std::uint32_t last = 0;
    std::uint32_t right = 0;  ///< of the two below; the left one comes next. 0: a leaf
  };
  void build(std::uint32_t first, std::uint32_t last);

  std::span<const Box> boxes_;
  std::vector<std::uint32_t> order_;
  std::vector<Node> nodes_;
};

}  // namespace kedge::arrays
