#include "store/node_ranks.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::store {

NodeRanks::NodeRanks(LogicalRank own_rank, std::vector<int> ranks_on_node)
    : own_rank_(own_rank), ranks_on_node_(std::move(ranks_on_node)) {
  if (ranks_on_node_.empty()) return;
  const auto found = std::ranges::find(ranks_on_node_, static_cast<int>(own_rank_.value));
  if (found == ranks_on_node_.end() ||
      std::ranges::adjacent_find(ranks_on_node_, std::greater_equal<>()) != ranks_on_node_.end()) {
    throw Error(ErrorCode::bad_state,
                compose("rank {} is not at its position in the list of its node's ranks", own_rank_.value));
  }
  index_ = static_cast<std::size_t>(found - ranks_on_node_.begin());
}

bool NodeRanks::is_on_node(LogicalRank rank) const noexcept {
  return rank == own_rank_ || std::ranges::binary_search(ranks_on_node_, static_cast<int>(rank.value));
}

bool NodeRanks::adopts(LogicalRank owner) const noexcept {
  return !ranks_on_node_.empty() && !is_on_node(owner) && owner.value % ranks_on_node_.size() == index_;
}

int NodeRanks::responsible_process(LogicalRank rank) const noexcept {
  if (ranks_on_node_.empty()) return static_cast<int>(own_rank_.value);
  if (is_on_node(rank)) return static_cast<int>(rank.value);
  return ranks_on_node_[rank.value % ranks_on_node_.size()];
}

}  // namespace kedge::store
