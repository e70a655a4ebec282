// Orders to each process, so that every rank's container of a chosen commit lies with its owner.
#pragma once

#include <cstdint>
#include <vector>

#include "recovery/agreement.hpp"
#include "redundancy/plan_stripes.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

/// A sealed file goes from the process that holds it to the one that owns it now; both have the order.
struct MoveOrder {
  store::FileKind kind = store::FileKind::container;
  LogicalRank logical_rank;
  store::FileKey key;
  std::uint64_t generation = 0;
  std::uint64_t size_bytes = 0;
  int from = 0;
  int to = 0;
};

/// A set that this process owns a member's files of. After the moves, what is present lies with its owner.
struct SetOrder {
  format::SetDescriptor set;  ///< kind descriptor, with this process's position
  redundancy::PresentFiles present;
  bool rebuild = false;  ///< rebuild what is missing; else only the descriptor may have to be written

  [[nodiscard]] store::FileKey key() const { return {set.commit_id, set.protection_id}; }
};

/// A container that nobody holds and no set can rebuild: its owner gets it from the prefix.
struct FetchOrder {
  LogicalRank logical_rank;
  store::FileKey key;
  std::uint64_t generation = 0;
};

struct Orders {
  std::vector<MoveOrder> moves;  ///< in the same order on both sides
  std::vector<FetchOrder> fetches;
  std::vector<SetOrder> sets;
};

/// COLLECTIVE. Homes of the commit's logical ranks and sets give out the orders. A container is fetched only
/// where the stores cannot give it.
[[nodiscard]] Orders plan_orders(const comm::Group& group, const Homes& homes, const Candidate& chosen);

}  // namespace kedge::recovery
