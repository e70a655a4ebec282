// Carries out the orders: moves sealed files to their owners, rebuilds lost ones, fetches what remains.
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
  CommitHead commit;                                 ///< which it is
  persist::PrefixStorage* prefix_storage = nullptr;  ///< where it may be fetched from
  std::string directory;                             ///< its name there; empty if the tier has no usable manifest of it
};

/// Recovery of this process's container.
struct Recovered {
  RecoverySource source = RecoverySource::in_place;  ///< source of its own container
  std::uint64_t container_bytes = 0;                 ///< moved, rebuilt or fetched
  std::string summary;  ///< e.g. "rank 2: container rebuilt from ranks 0 4 6 (xor)", or empty
};

/// COLLECTIVE. Afterwards every owner has its container, sealed. Throws the same Error on all ranks: the step that
/// failed gives up what it made; what earlier steps sealed stays, and the next look finds it.
[[nodiscard]] Recovered execute_orders(const comm::Group& group, store::NodeStore& store, const Orders& orders,
                                       const RecoverySettings& settings);

}  // namespace kedge::recovery
