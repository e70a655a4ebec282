#include "format/cover.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "format/region_spec.hpp"

// Finding the first wrong element: a box is divided at every plane that cuts no block, which reduces grids, even or
// not, to boxes of one block each. A box without such a plane (its blocks overlap or interlock) is cut at a block's
// corner, together with the blocks that this plane crosses.
namespace kedge::format {
namespace {

using Point = std::array<std::uint64_t, Shape::kMaxDimensions>;  // compares in row-major order

struct Box {
  Point begin{};
  Point end{};
  bool operator==(const Box&) const = default;
};

// A box of the array, and the blocks clipped to it.
struct Part {
  Box box;
  std::vector<Box> blocks;
};

class Search {
 public:
  Search(std::size_t dimensions, bool holes_allowed) : dimensions_(dimensions), holes_allowed_(holes_allowed) {}

  // The first element that is in no block or in several.
  std::optional<Point> first_wrong(Part whole) {
    open_.push_back(std::move(whole));
    while (!open_.empty()) {
      Part part = std::move(open_.back());
      open_.pop_back();
      if (found_ && part.box.begin >= *found_) continue;
      if (!decide(part)) divide(std::move(part));
    }
    return found_;
  }

 private:
  void found(const Point& wrong) {
    if (!found_ || wrong < *found_) found_ = wrong;
  }

  // False if the part must be divided further.
  bool decide(const Part& part) {
    if (part.blocks.empty()) {
      if (!holes_allowed_) found(part.box.begin);
      return true;
    }
    if (part.blocks.size() == 1) {
      if (!holes_allowed_) find_hole_beside(part.blocks.front(), part.box);
      return true;
    }
    const auto all = std::ranges::find(part.blocks, part.box);
    if (all == part.blocks.end()) return false;
    std::optional<Point> first;
    for (auto other = part.blocks.begin(); other != part.blocks.end(); ++other) {
      if (other != all && (!first || other->begin < *first)) first = other->begin;
    }
    found(*first);
    return true;
  }

  void find_hole_beside(const Box& block, const Box& box) {
    if (block.begin != box.begin) return found(box.begin);
    for (std::size_t d = dimensions_; d-- > 0;) {
      if (block.end[d] == box.end[d]) continue;
      Point hole = box.begin;
      hole[d] = block.end[d];
      return found(hole);
    }
  }

  void divide(Part part) {
    for (std::size_t d = 0; d < dimensions_; ++d) {
      if (divide_between_blocks(part, d)) return;
    }
    for (std::size_t d = 0; d < dimensions_; ++d) {
      if (cut_blocks(part, d)) return;
    }
  }

  // Divides at every plane across dimension d that cuts no block, with the first part on top of the stack.
  bool divide_between_blocks(Part& part, std::size_t d) {
    auto& blocks = part.blocks;
    std::ranges::sort(blocks, {}, [d](const Box& block) { return block.begin[d]; });
    std::vector<Part> parts;
    std::uint64_t begin = part.box.begin[d];
    for (std::size_t i = 0; i < blocks.size();) {
      if (blocks[i].begin[d] > begin) parts.push_back({slab(part.box, d, begin, blocks[i].begin[d]), {}});
      const std::size_t first = i;
      begin = blocks[i].begin[d];
      std::uint64_t end = blocks[i].end[d];
      for (++i; i < blocks.size() && blocks[i].begin[d] < end; ++i) end = std::max(end, blocks[i].end[d]);
      if (parts.empty() && i == blocks.size() && end == part.box.end[d]) return false;  // no such plane
      const auto from = blocks.begin() + static_cast<std::ptrdiff_t>(first);
      parts.push_back({slab(part.box, d, begin, end), {from, blocks.begin() + static_cast<std::ptrdiff_t>(i)}});
      begin = end;
    }
    if (begin != part.box.end[d]) parts.push_back({slab(part.box, d, begin, part.box.end[d]), {}});
    std::move(parts.rbegin(), parts.rend(), std::back_inserter(open_));
    return true;
  }

  // Cuts in two at the median of the block corners in dimension d.
  bool cut_blocks(Part& part, std::size_t d) {
    std::vector<std::uint64_t> corners;
    for (const Box& block : part.blocks) {
      if (block.begin[d] > part.box.begin[d]) corners.push_back(block.begin[d]);
      if (block.end[d] < part.box.end[d]) corners.push_back(block.end[d]);
    }
    if (corners.empty()) return false;
    const auto middle = corners.begin() + static_cast<std::ptrdiff_t>(corners.size() / 2);
    std::ranges::nth_element(corners, middle);
    Part before{slab(part.box, d, part.box.begin[d], *middle), {}};
    Part after{slab(part.box, d, *middle, part.box.end[d]), {}};
    for (const Box& block : part.blocks) {
      if (block.begin[d] < *middle) {
        before.blocks.push_back(slab(block, d, block.begin[d], std::min(block.end[d], *middle)));
      }
      if (block.end[d] > *middle) {
        after.blocks.push_back(slab(block, d, std::max(block.begin[d], *middle), block.end[d]));
      }
    }
    open_.push_back(std::move(after));
    open_.push_back(std::move(before));
    return true;
  }

  static Box slab(Box box, std::size_t d, std::uint64_t begin, std::uint64_t end) {
    box.begin[d] = begin;
    box.end[d] = end;
    return box;
  }

  std::size_t dimensions_;
  bool holes_allowed_;
  std::vector<Part> open_;
  std::optional<Point> found_;
};

Box box_of(const Shape& offset, const Shape& shape) {
  Box box;
  for (std::size_t d = 0; d < shape.dimensions(); ++d) {
    box.begin[d] = offset[d];
    box.end[d] = offset[d] + shape[d];
  }
  return box;
}

bool contains(const SavedBlock& block, const Point& point) {
  for (std::size_t d = 0; d < block.shape.dimensions(); ++d) {
    if (point[d] < block.offset[d] || point[d] - block.offset[d] >= block.shape[d]) return false;
  }
  return true;
}

std::string element(const Point& point, std::size_t dimensions) {
  if (dimensions == 0) return "its only element";
  std::string text;
  for (std::size_t d = 0; d < dimensions; ++d) text += kedge::compose("{}{}", d == 0 ? "" : ", ", point[d]);
  return "element (" + text + ")";
}

Failure describe(std::string_view array, const Shape& global_shape, const std::vector<SavedBlock>& blocks,
                 const Point& wrong) {
  std::vector<std::uint32_t> ranks;
  for (const SavedBlock& block : blocks) {
    if (contains(block, wrong)) ranks.push_back(block.rank);
  }
  std::ranges::sort(ranks);
  const std::string what = kedge::compose("global array '{}' ({})", printable_name(array), to_string(global_shape));
  const std::string which = element(wrong, global_shape.dimensions());
  std::string message;
  if (ranks.empty()) {
    message = kedge::compose(
        "{}: no rank saves {}; the blocks must cover the whole array (or be saved with holes_allowed)", what, which);
  } else {
    message = kedge::compose("{}: {} is saved by ranks {} and {}; save each element on one rank", what, which, ranks[0],
                             ranks[1]);
  }
  return {ErrorCode::mismatch, std::move(message)};
}

}  // namespace

bool has_elements(const Shape& shape) noexcept {
  return std::ranges::none_of(shape.extents(), [](std::uint64_t extent) { return extent == 0; });
}

std::optional<Failure> check_cover(std::string_view array, const Shape& global_shape, std::vector<SavedBlock> blocks,
                                   bool holes_allowed) {
  if (!has_elements(global_shape)) return std::nullopt;
  std::erase_if(blocks, [](const SavedBlock& block) { return !has_elements(block.shape); });
  Part whole{box_of(Shape{}, global_shape), {}};
  for (const SavedBlock& block : blocks) whole.blocks.push_back(box_of(block.offset, block.shape));
  const auto wrong = Search(global_shape.dimensions(), holes_allowed).first_wrong(std::move(whole));
  if (!wrong) return std::nullopt;
  return describe(array, global_shape, blocks, *wrong);
}

}  // namespace kedge::format
