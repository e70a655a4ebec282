#include "store/node_ranks.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::store {

NodeRanks::NodeRanks(LogicalRank mine, std::vector<int> on_node) : mine_(mine), on_node_(std::move(on_node)) {
  if (on_node_.empty()) return;
  const auto found = std::ranges::find(on_node_, static_cast<int>(mine_.value));
  if (found == on_node_.end() || std::ranges::adjacent_find(on_node_, std::greater_equal<>()) != on_node_.end()) {
    throw Error(ErrorCode::bad_state,
                compose("rank {} is not at its position in the list of its node's ranks", mine_.value));
  }
  index_ = static_cast<std::size_t>(found - on_node_.begin());
}

bool NodeRanks::is_here(LogicalRank rank) const noexcept {
  return rank == mine_ || std::ranges::binary_search(on_node_, static_cast<int>(rank.value));
}

bool NodeRanks::adopts(LogicalRank owner) const noexcept {
  return !on_node_.empty() && !is_here(owner) && owner.value % on_node_.size() == index_;
}

int NodeRanks::process_in_charge_of(LogicalRank rank) const noexcept {
  if (on_node_.empty()) return static_cast<int>(mine_.value);
  if (is_here(rank)) return static_cast<int>(rank.value);
  return on_node_[rank.value % on_node_.size()];
}

}  // namespace kedge::store
