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
  /// `on_node` is ascending and contains `mine`, or is empty: then no file is adopted. Throws Error{bad_state}
  /// otherwise.
  NodeRanks(LogicalRank mine, std::vector<int> on_node);

  [[nodiscard]] LogicalRank mine() const noexcept { return mine_; }
  [[nodiscard]] std::span<const int> on_node() const noexcept { return on_node_; }
  /// Whether that rank runs on this node.
  [[nodiscard]] bool is_here(LogicalRank rank) const noexcept;
  [[nodiscard]] bool adopts(LogicalRank owner) const noexcept;
  /// The process of this node that owns or adopts files of that rank here.
  [[nodiscard]] int process_in_charge_of(LogicalRank rank) const noexcept;

 private:
  LogicalRank mine_;
  std::vector<int> on_node_;
  std::size_t index_ = 0;  ///< of `mine`
};

}  // namespace kedge::store
