#include "engine/state_io.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/state_items.hpp"

namespace kedge::engine {
namespace {

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
  if (reader.is_of_other_ranks()) return load_of_other_ranks(reader, state);
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
