// Which ranks run on this node, and whose files a process keeps.
#pragma once

#include <span>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::store {

/// A process keeps the files of its own rank, and adopts its share of those whose rank does not run on this node: the
/// process at index r mod the number of ranks adopts the files of rank r. A value.
class NodeRanks {
 public:
  /// `ranks_on_node` is ascending and contains `own_rank`, or is empty: then no file is adopted. Throws
  /// Error{bad_state} otherwise.
  NodeRanks(LogicalRank own_rank, std::vector<int> ranks_on_node);

  [[nodiscard]] LogicalRank own_rank() const noexcept { return own_rank_; }
  [[nodiscard]] std::span<const int> ranks_on_node() const noexcept { return ranks_on_node_; }
  /// Whether that rank runs on this node.
  [[nodiscard]] bool is_on_node(LogicalRank rank) const noexcept;
  [[nodiscard]] bool adopts(LogicalRank owner) const noexcept;
  /// The process of this node that owns or adopts files of that rank here.
  [[nodiscard]] int responsible_process(LogicalRank rank) const noexcept;

 private:
  LogicalRank own_rank_;
  std::vector<int> ranks_on_node_;
  std::size_t index_ = 0;  ///< index of `own_rank` among the ranks on the node
};

}  // namespace kedge::store
