#include "tools/division.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "arrays/box_tree.hpp"
#include "base/text.hpp"

namespace kedge::tools {
namespace {

using arrays::Box;
using arrays::Point;

// Finding the first element takes a time that grows with the square of the number of blocks.
constexpr std::size_t kHoleSearchedMax = 4096;

Box bounds_of(std::span<const SavedBlock> blocks) {
  Box bounds = blocks.front().box;
  for (const SavedBlock& block : blocks) {
    for (std::uint32_t axis = 0; axis < bounds.dimensions; ++axis) {
      bounds.begin[axis] = std::min(bounds.begin[axis], block.box.begin[axis]);
      bounds.end[axis] = std::max(bounds.end[axis], block.box.end[axis]);
    }
  }
  return bounds;
}

/// Where parts begin along each axis, and then where the last one ends.
using Cuts = std::vector<std::vector<std::uint64_t>>;

/// The cuts of a grid in which each cell is one block; nothing if the blocks are none.
std::optional<Cuts> grid_of(std::span<const SavedBlock> blocks, const Box& bounds) {
  Cuts cuts(bounds.dimensions);
  std::uint64_t cells = 1;
  for (std::uint32_t axis = 0; axis < bounds.dimensions; ++axis) {
    std::set<std::uint64_t> begins;
    for (const SavedBlock& block : blocks) begins.insert(block.box.begin[axis]);
    cuts[axis].assign(begins.begin(), begins.end());
    if (begins.size() > blocks.size() / cells) return std::nullopt;
    cells *= begins.size();
    cuts[axis].push_back(bounds.end[axis]);
  }
  std::set<Point> seen;
  for (const SavedBlock& block : blocks) {
    for (std::uint32_t axis = 0; axis < bounds.dimensions; ++axis) {
      const auto begin = std::ranges::lower_bound(cuts[axis], block.box.begin[axis]);
      if (*(begin + 1) != block.box.end[axis]) return std::nullopt;
    }
    seen.insert(block.box.begin);
  }
  if (seen.size() != blocks.size() || seen.size() != cells) return std::nullopt;
  return cuts;
}

/// Parts such as "40 rows" or "3 to 4 rows".
std::string parts_text(const std::vector<std::uint64_t>& cuts, std::size_t axis, std::size_t dimensions) {
  std::uint64_t least = cuts[1] - cuts[0];
  std::uint64_t most = least;
  for (std::size_t i = 1; i + 1 < cuts.size(); ++i) {
    least = std::min(least, cuts[i + 1] - cuts[i]);
    most = std::max(most, cuts[i + 1] - cuts[i]);
  }
  const std::string lengths = least == most ? compose("{}", least) : compose("{} to {}", least, most);
  const std::string count = compose("{} blocks", cuts.size() - 1);
  if (dimensions > 2) return compose("{}, {} each along axis {}", count, lengths, axis);
  return compose("{} of {} {}", count, lengths, dimensions == 1 ? "elements" : axis == 0 ? "rows" : "columns");
}

std::string grid_text(const Cuts& cuts) {
  std::string counts;
  std::vector<std::size_t> divided;
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    counts += compose("{}{}", counts.empty() ? "" : " x ", cuts[axis].size() - 1);
    if (cuts[axis].size() > 2) divided.push_back(axis);
  }
  if (divided.empty()) return "one block";
  if (divided.size() > 1) return compose("a grid of {} blocks", counts);
  return parts_text(cuts[divided.front()], divided.front(), cuts.size());
}

std::optional<std::pair<std::size_t, std::size_t>> find_overlap(std::span<const Box> boxes) {
  const arrays::BoxTree tree(boxes);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::optional<std::size_t> other;
    tree.for_each_overlap(boxes[i], [&](std::size_t found) {
      if (found > i && (!other || found < *other)) other = found;
    });
    if (other) return std::pair(i, *other);
  }
  return std::nullopt;
}

void find_hole(const Box& whole, std::span<const Box> boxes, Division& division) {
  if (!division.overlap) {
    division.missing = arrays::volume(whole);
    for (const Box& box : boxes) division.missing -= arrays::volume(box);
    if (division.missing == 0) return;
  }
  if (boxes.size() <= kHoleSearchedMax) division.hole = arrays::first_element_in_none(whole, boxes);
}

}  // namespace

std::string indices_text(const Point& point, std::size_t dimensions) {
  std::string text;
  for (std::size_t axis = 0; axis < dimensions; ++axis) text += compose("{}{}", axis == 0 ? "" : ", ", point[axis]);
  return "(" + text + ")";
}

Division describe_division(const Shape& global_shape, std::span<const SavedBlock> blocks, bool is_complete) {
  const Box whole = arrays::box_of(global_shape);
  Division division;
  if (blocks.empty()) {
    division.words = arrays::volume(whole) == 0 ? "no elements" : "no block";
    if (is_complete && arrays::volume(whole) != 0) find_hole(whole, {}, division);
    return division;
  }
  const Box bounds = bounds_of(blocks);
  const auto grid = grid_of(blocks, bounds);
  division.words = grid ? grid_text(*grid) : compose("{} blocks, no grid", blocks.size());
  if (blocks.size() == 1 && bounds == whole) division.words = compose("whole, by rank {}", blocks.front().rank);
  else if (bounds != whole) {
    Point last = bounds.end;
    for (std::uint32_t axis = 0; axis < bounds.dimensions; ++axis) --last[axis];
    division.words += compose(", from {} to {}", indices_text(bounds.begin, bounds.dimensions),
                              indices_text(last, bounds.dimensions));
  }
  if (grid && bounds == whole) return division;
  std::vector<Box> boxes;
  for (const SavedBlock& block : blocks) boxes.push_back(block.box);
  if (!grid) division.overlap = find_overlap(boxes);
  if (is_complete) find_hole(whole, boxes, division);
  return division;
}

}  // namespace kedge::tools
