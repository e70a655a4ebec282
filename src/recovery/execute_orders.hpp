// Executes orders: moves sealed files to their owners, rebuilds lost ones, and fetches the rest from the prefix.
#pragma once

#include <cstdint>
#include <string>

#include "comm/group.hpp"
#include "kedge/selection.hpp"
#include "persist/prefix_storage.hpp"
#include "recovery/orders.hpp"
#include "redundancy/plan_pieces.hpp"
#include "store/node_store.hpp"
#include "store/seal_transaction.hpp"

namespace kedge::recovery {

struct RecoverySettings {
  bool durable = false;
  redundancy::PieceSettings pieces;
  CommitHead commit;                                 ///< to recover
  persist::PrefixStorage* prefix_storage = nullptr;  ///< to fetch from
  std::string directory;                             ///< on the prefix; empty if there is no usable manifest
};

/// Recovery of this process's container, and its cost.
struct Recovered {
  RecoverySource source = RecoverySource::in_place;  ///< of this process's container
  std::uint64_t container_bytes = 0;                 ///< moved, rebuilt or fetched
  std::string summary;  ///< e.g. "rank 2: container rebuilt from ranks 0 4 6 (xor)", or empty
};

/// COLLECTIVE. Afterwards every owner has its sealed container. Throws the same Error on all ranks: the failed step
/// discards its files; files sealed by earlier steps stay, and the next survey finds them.
[[nodiscard]] Recovered execute_orders(const comm::Group& group, store::NodeStore& store, const Orders& orders,
                                       const RecoverySettings& settings);

}  // namespace kedge::recovery
