// Orders to each process that give every owner its container of the selected commit.
#pragma once

#include <cstdint>
#include <vector>

#include "recovery/agreement.hpp"
#include "redundancy/plan_stripes.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

/// Moves a sealed file to the process that owns it now. Sender and receiver get the same order.
struct MoveOrder {
  store::FileKind kind = store::FileKind::container;
  LogicalRank logical_rank;
  store::FileKey key;
  std::uint64_t generation = 0;
  std::uint64_t size_bytes = 0;
  int from = 0;
  int to = 0;
};

/// A set in which this process owns a member. After the moves, each owner has the member's existing files.
struct SetOrder {
  format::SetDescriptor set;  ///< a descriptor with this process's position
  redundancy::PresentFiles present;
  bool rebuild = false;  ///< rebuild missing files; otherwise at most write the descriptor

  [[nodiscard]] store::FileKey key() const { return {set.commit_id, set.protection_id}; }
};

/// A container that must be fetched from the prefix, because no process has it and no set can rebuild it.
struct FetchOrder {
  LogicalRank logical_rank;
  store::FileKey key;
  std::uint64_t generation = 0;
};

struct Orders {
  std::vector<MoveOrder> moves;  ///< in the same order for sender and receiver
  std::vector<FetchOrder> fetches;
  std::vector<SetOrder> sets;
};

/// COLLECTIVE. The homes of the commit's logical ranks and sets send the orders. Only containers that the stores cannot
/// provide are fetched.
[[nodiscard]] Orders plan_orders(const comm::Group& group, const Homes& homes, const Candidate& chosen);

}  // namespace kedge::recovery
