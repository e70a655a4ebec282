#include "engine/state_io.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::engine {
namespace {

using Extents = std::span<const std::uint64_t>;

/// The extents of one after those of the other; too long if there are too many.
Shape joined(Extents first, Extents second) {
  std::vector<std::uint64_t> extents(first.begin(), first.end());
  extents.insert(extents.end(), second.begin(), second.end());
  return Shape(Extents(extents));
}

Extents of_element(const State::View& view) { return view.region.shape.extents().last(view.element_dimensions); }

/// Number of elements of the variable, whatever one element is.
std::uint64_t count_of(Extents extents) {
  std::uint64_t count = 0;
  (void)element_count(Shape(extents), count);
  return count;
}

std::uint64_t count_of(const State::View& view) {
  return count_of(view.region.shape.extents().first(view.region.shape.dimensions() - view.element_dimensions));
}

/// Shape of the region in this block: the block's shape, then an element's.
Shape shape_in(const Block& block, const State::View& view) {
  if (block.shape.dimensions() == 0) return view.region.shape;
  return joined(block.shape.extents(), of_element(view));
}

/// The user counts elements; the place of a region counts what elements consist of, too.
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

/// Whether the saved region consists of such elements, whatever their number.
bool has_elements_of(const State::View& view, const Shape& saved) {
  const Extents extents = saved.extents();
  return extents.size() >= view.element_dimensions &&
         std::ranges::equal(extents.last(view.element_dimensions), of_element(view));
}

/// Calls a function of the application, which may throw what it likes. `what` completes "the function that".
template <class Function>
auto in_application(const State::Item& item, std::string_view what, Function&& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                compose("the function for {} '{}' threw: {}", what, item.name, error.what()));
  } catch (...) {
    throw Error(ErrorCode::invalid_argument,
                compose("the function for {} '{}' threw something that is not a std::exception", what, item.name));
  }
}

State::View view_of(const State::Item& item) {
  return in_application(item, "the memory of", [&] { return item.view(); });
}

Block block_of(const State::Item& item) {
  return in_application(item, "the block of", [&] { return item.block(); });
}

/// Makes room for what was saved, if it was saved of such elements; if not, load says so.
void make_room(const State::Item& item, State::View& view, const format::RegionSpec& saved) {
  if (!item.resize || saved.dtype != view.region.dtype || saved.members != view.region.members) return;
  const Extents extents = saved.shape.extents();
  if (extents.size() == view.element_dimensions || !has_elements_of(view, saved.shape)) return;
  const std::uint64_t count = count_of(extents.first(extents.size() - view.element_dimensions));
  in_application(item, "resizes", [&] { item.resize(count); });
  view = view_of(item);
  if (count_of(view) == count) return;
  throw Error(ErrorCode::invalid_argument,
              compose("resize({}) left '{}' with {} elements; check the container's resize()", count, item.name,
                      count_of(view)));
}

void load(Reader& reader, const State::Item& item) {
  const format::RegionSpec& saved = reader.saved(item.name);
  State::View view = view_of(item);
  make_room(item, view, saved);
  // Where a block of changing place stands is what the checkpoint says; the caller's own idea may depend on what is
  // only now loaded.
  const Block block = item.block_is_function ? Block{} : block_of(item);
  MutableRegion target = view.region;
  if (!item.block_is_function) target.shape = shape_in(block, view);
  else if (has_elements_of(view, saved.shape) && count_of(saved.shape.extents()) == count_of(target.shape.extents()))
    target.shape = saved.shape;
  // The block is what was saved, so the variable must have room for it. Any other block load refuses.
  if (target.shape == saved.shape) require_fit(item, view, block);
  (void)reader.load(item.name, target, place_in(block, view, target.shape));
}

}  // namespace

StateSize size_of(const State& state) {
  StateSize size;
  for (const State::Item& item : state.items()) {
    auto failure = attempt([&] {
      const State::View view = view_of(item);
      std::uint64_t elements = 0;
      const bool is_savable = view.region.data != nullptr && element_count(view.region.shape, elements);
      if (is_savable) size.bytes += elements * size_bytes(view.region.dtype);
    });
    if (failure && !size.failure) size.failure = std::move(failure);
  }
  return size;
}

void save(Writer& writer, const State& state) {
  for (const State::Item& item : state.items()) {
    auto failure = attempt([&] {
      const State::View view = view_of(item);
      const Block block = block_of(item);
      require_fit(item, view, block);
      const MutableRegion& now = view.region;
      const Shape shape = shape_in(block, view);
      (void)writer.save(item.name, {now.data, now.dtype, shape, now.members, now.stream}, place_in(block, view, shape));
    });
    if (failure) (void)writer.remember(*std::move(failure));
  }
}

void load(Reader& reader, const State& state) {
  for (const State::Item& item : state.items()) {
    auto failure = attempt([&] { load(reader, item); });
    if (failure) (void)reader.remember(*std::move(failure));
  }
  reader.record_unloaded(state);
}

Failure failure_after_partial_load(Failure why, const Failure& damage) {
  why.message += compose(
      "; the variables still hold data loaded from a damaged checkpoint ({}): restart the program instead of "
      "continuing with them",
      to_string(damage));
  return why;
}

}  // namespace kedge::engine
