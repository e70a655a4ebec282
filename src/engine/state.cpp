#include "kedge/state.hpp"

#include <algorithm>
#include <utility>

namespace kedge {

State::View State::row_of(void* data, std::size_t count, const ElementType& type) {
  return {{data, type.dtype, detail::prepend(count, type.shape), type.members}, type.shape.dimensions()};
}

State::View State::one_of(void* data, const ElementType& type) {
  // An array's extents are the variable's own; the bytes of a struct are not.
  return {{data, type.dtype, type.shape, type.members}, type.is_struct ? 1U : 0U};
}

State& State::add_item(const std::string& name, std::function<View()> view, std::function<void(std::size_t)> resize,
                       std::function<Block()> block, bool block_is_function) {
  Item item{name, std::move(view), std::move(resize), std::move(block), block_is_function, {}};
  const auto same = std::ranges::find(items_, item.name, &Item::name);
  if (same == items_.end()) items_.push_back(std::move(item));
  else *same = std::move(item);
  return *this;
}

State& State::set_per_rank(const std::string& name, PerRank per_rank) {
  std::ranges::find(items_, name, &Item::name)->per_rank = std::move(per_rank.restore);
  return *this;
}

}  // namespace kedge
