#include "engine/state_io.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
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

Extents of_element(const State::Seen& seen) { return seen.region.shape.extents().last(seen.inner); }

/// Of the variable, whatever one element is.
std::uint64_t count_of(Extents extents) {
  std::uint64_t count = 0;
  (void)element_count(Shape(extents), count);
  return count;
}

std::uint64_t count_of(const State::Seen& seen) {
  return count_of(seen.region.shape.extents().first(seen.region.shape.dimensions() - seen.inner));
}

/// What the region's shape is in this block: that of the block, and that of an element.
Shape shape_in(const Block& block, const State::Seen& seen) {
  if (block.shape.dimensions() == 0) return seen.region.shape;
  return joined(block.shape.extents(), of_element(seen));
}

/// The user counts elements; the place of a region counts what elements consist of, too.
Placement place_in(const Block& block, const State::Seen& seen, const Shape& shape) {
  const auto* shard = std::get_if<Shard>(&block.placement);
  if (shard == nullptr || shard->global_shape.dimensions() + seen.inner != shape.dimensions()) return block.placement;
  const std::array<std::uint64_t, Shape::kMaxDimensions> zeros{};
  return Shard{joined(shard->global_shape.extents(), of_element(seen)),
               joined(shard->offset.extents(), Extents(zeros).first(seen.inner)), shard->holes_allowed};
}

void require_fit(const State::Item& item, const State::Seen& seen, const Block& block) {
  if (block.shape.dimensions() == 0 || count_of(block.shape.extents()) == count_of(seen)) return;
  throw Error(ErrorCode::invalid_argument,
              compose("the block of '{}' has shape {}, but the variable has {} elements; give it the shape that the "
                      "variable has",
                      item.name, to_string(block.shape), count_of(seen)));
}

/// Makes room for what was saved, if it was saved of such elements; if not, load says so.
void make_room(const State::Item& item, State::Seen& seen, const format::RegionSpec& saved) {
  if (!item.resize || saved.dtype != seen.region.dtype || saved.members != seen.region.members) return;
  const Extents extents = saved.shape.extents();
  if (extents.size() <= seen.inner || !std::ranges::equal(extents.last(seen.inner), of_element(seen))) return;
  const std::uint64_t count = count_of(extents.first(extents.size() - seen.inner));
  item.resize(count);
  seen = item.look();
  if (count_of(seen) == count) return;
  throw Error(
      ErrorCode::invalid_argument,
      compose("'{}' has {} elements after it was resized to the {} that were saved", item.name, count_of(seen), count));
}

void load(Reader& reader, const State::Item& item) {
  const format::RegionSpec& saved = reader.saved(item.name);
  State::Seen seen = item.look();
  make_room(item, seen, saved);
  // Where a block of changing place stands is what the checkpoint says; the caller's own idea may depend on what is
  // only now loaded.
  const Block block = item.moves ? Block{} : item.block();
  MutableRegion target = seen.region;
  const bool any_shape = item.moves || (item.resize && block.shape.dimensions() == 0);
  if (!any_shape) target.shape = shape_in(block, seen);
  else if (count_of(saved.shape.extents()) == count_of(target.shape.extents())) target.shape = saved.shape;
  (void)reader.load(item.name, target, place_in(block, seen, target.shape));
}

}  // namespace

void save(Writer& writer, const State& state) {
  for (const State::Item& item : state.items()) {
    auto failure = attempt([&] {
      const State::Seen seen = item.look();
      const Block block = item.block();
      require_fit(item, seen, block);
      const MutableRegion& now = seen.region;
      const Shape shape = shape_in(block, seen);
      (void)writer.save(item.name, {now.data, now.dtype, shape, now.members}, place_in(block, seen, shape));
    });
    if (failure) (void)writer.remember(*std::move(failure));
  }
}

void load(Reader& reader, const State& state) {
  std::set<std::string> names;
  for (const State::Item& item : state.items()) {
    auto failure = attempt([&] { load(reader, item); });
    if (failure) (void)reader.remember(*std::move(failure));
    names.insert(item.name);
  }
  reader.log_unread(names);
}

}  // namespace kedge::engine

namespace kedge {

State::Seen State::row_of(void* data, std::size_t count, const ElementType& type) {
  return {{data, type.dtype, detail::prepend(count, type.shape), type.members}, type.shape.dimensions()};
}

State::Seen State::one_of(void* data, const ElementType& type) {
  // An array's extents are the variable's own; the bytes of a struct are not.
  return {{data, type.dtype, type.shape, type.members}, type.is_struct ? 1U : 0U};
}

State& State::add_item(std::string name, std::function<Seen()> look, std::function<void(std::size_t)> resize,
                       std::function<Block()> block, bool moves) {
  Item item{std::move(name), std::move(look), std::move(resize), std::move(block), moves};
  const auto same = std::ranges::find(items_, item.name, &Item::name);
  if (same == items_.end()) items_.push_back(std::move(item));
  else *same = std::move(item);
  return *this;
}

}  // namespace kedge
