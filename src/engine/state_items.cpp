#include "engine/state_items.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace kedge::engine {
namespace {

/// The extents of one after those of the other; too long if there are too many.
Shape joined(Extents first, Extents second) {
  std::vector<std::uint64_t> extents(first.begin(), first.end());
  extents.insert(extents.end(), second.begin(), second.end());
  return Shape(Extents(extents));
}

}  // namespace

Extents of_element(const State::View& view) { return view.region.shape.extents().last(view.element_dimensions); }

std::uint64_t count_of(Extents extents) {
  std::uint64_t count = 0;
  (void)element_count(Shape(extents), count);
  return count;
}

std::uint64_t count_of(const State::View& view) {
  return count_of(view.region.shape.extents().first(view.region.shape.dimensions() - view.element_dimensions));
}

Shape shape_in(const Block& block, const State::View& view) {
  if (block.shape.dimensions() == 0) return view.region.shape;
  return joined(block.shape.extents(), of_element(view));
}

Placement place_in(const Block& block, const State::View& view, const Shape& shape) {
  const auto* shard = std::get_if<Shard>(&block.placement);
  if (shard == nullptr || shard->global_shape.dimensions() + view.element_dimensions != shape.dimensions())
    return block.placement;
  const std::array<std::uint64_t, Shape::kMaxDimensions> zeros{};
  return Shard{joined(shard->global_shape.extents(), of_element(view)),
               joined(shard->offset.extents(), Extents(zeros).first(view.element_dimensions)), shard->holes_allowed};
}

void require_fit(const State::Item& item, const State::View& view, const Block& block) {
  if (block.shape.dimensions() == 0 || count_of(block.shape.extents()) == count_of(view)) return;
  throw Error(ErrorCode::invalid_argument,
              compose("the block of '{}' has shape {}, but the variable has {} elements; make them agree", item.name,
                      to_string(block.shape), count_of(view)));
}

bool has_elements_of(const State::View& view, const Shape& saved) {
  const Extents extents = saved.extents();
  return extents.size() >= view.element_dimensions &&
         std::ranges::equal(extents.last(view.element_dimensions), of_element(view));
}

State::View view_of(const State::Item& item) {
  return in_application(item, "the memory of", [&] { return item.view(); });
}

Block block_of(const State::Item& item) {
  return in_application(item, "the block of", [&] { return item.block(); });
}

void make_room(const State::Item& item, State::View& view, const format::RegionSpec& saved) {
  if (!item.resize || saved.dtype != view.region.dtype || saved.members != view.region.members) return;
  const Extents extents = saved.shape.extents();
  if (extents.size() == view.element_dimensions || !has_elements_of(view, saved.shape)) return;
  resize(item, view, count_of(extents.first(extents.size() - view.element_dimensions)));
}

void resize(const State::Item& item, State::View& view, std::uint64_t count) {
  in_application(item, "resizing", [&] { item.resize(count); });
  view = view_of(item);
  if (count_of(view) == count) return;
  throw Error(ErrorCode::invalid_argument,
              compose("resize({}) left '{}' with {} elements; check the container's resize()", count, item.name,
                      count_of(view)));
}

}  // namespace kedge::engine
