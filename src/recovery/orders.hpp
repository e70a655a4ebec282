// Orders to each process that give every owner its container of the selected commit.
#pragma once

#include <cstdint>
#include <functional>
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

/// A set of which this process has a member. After the moves, each process has its members' existing files.
struct SetOrder {
  format::SetDescriptor set;  ///< a descriptor with this process's position
  redundancy::PresentFiles present;
  std::vector<int> processes;  ///< that have the members, by position
  bool rebuild = false;        ///< rebuild missing files; otherwise at most write the descriptor

  [[nodiscard]] store::FileKey key() const { return {set.commit_id, set.protection_id}; }
};

/// A container that must be fetched from the prefix, because no process has it and no set can rebuild it.
struct FetchOrder {
  LogicalRank logical_rank;
  store::FileKey key;
  std::uint64_t generation = 0;
};

/// A container that this process is to read for all others.
struct HeldRank {
  LogicalRank logical_rank;
  bool in_store = false;  ///< of this node, perhaps rebuilt; otherwise on the prefix
};

struct Orders {
  std::vector<MoveOrder> moves;  ///< in the same order for sender and receiver
  std::vector<FetchOrder> fetches;
  std::vector<SetOrder> sets;
  std::vector<HeldRank> held;  ///< of a commit of another number of ranks, ascending
};

/// COLLECTIVE. The homes of the commit's logical ranks and sets send the orders. Only containers that the stores cannot
/// provide are fetched. A commit of another number of ranks stays as it lies: nothing is moved or fetched, lost
/// containers are rebuilt where the rest of their set is, and every container is read by one process (decision 044).
///
/// `keeper_here`: the process of this process's node that may make files of a rank there.
[[nodiscard]] Orders plan_orders(const comm::Group& group, const Homes& homes, const Candidate& chosen,
                                 const std::function<int(LogicalRank)>& keeper_here);

}  // namespace kedge::recovery
