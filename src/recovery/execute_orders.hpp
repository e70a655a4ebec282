// Executes orders: moves sealed files to their owners, rebuilds lost ones, and fetches the rest from the prefix.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/group.hpp"
#include "kedge/selection.hpp"
#include "persist/prefix_storage.hpp"
#include "recovery/orders.hpp"
#include "redundancy/plan_stripes.hpp"
#include "store/node_store.hpp"
#include "store/seal_transaction.hpp"

namespace kedge::recovery {

struct RecoverySettings {
  bool durable = false;
  redundancy::PieceSettings pieces;
  CommitHead commit;                                ///< to recover
  persist::PrefixReader* prefix_storage = nullptr;  ///< to fetch from
  std::string directory;                            ///< on the prefix; empty if there is no usable manifest
};

/// Recovery of this process's container, and its cost.
struct Recovered {
  RecoverySource source = RecoverySource::in_place;  ///< of this process's container
  std::uint64_t container_bytes = 0;                 ///< moved, rebuilt or fetched
  std::string summary;  ///< e.g. "rank 2: container rebuilt from ranks 0 4 6 (xor)", or empty
};

// The three steps, in this order.

/// COLLECTIVE over all ranks. Every moved file is verified whole before it is sealed. The copies they came from stay:
/// as long as the commit is not protected where it lies now, it is protected where it lay. Throws the same Error on all
/// ranks.
void relocate(const comm::Group& group, store::NodeStore& store, std::span<const MoveOrder> moves,
              const RecoverySettings& settings, Recovered& recovered);

/// COLLECTIVE over all ranks; all that is present must lie with its owner. Rebuilds the containers and parity that
/// are missing in sets to rebuild, and descriptors where an owner has none. A rebuilt container is checked against its
/// recorded CRC32C before it is sealed. Throws the same Error on all ranks.
void rebuild(const comm::Group& group, store::NodeStore& store, std::span<const SetOrder> sets,
             const RecoverySettings& settings, Recovered& recovered);

/// COLLECTIVE over all ranks. Each container is copied byte for byte, compared with the checksum that the manifest has
/// of it, and sealed last. Throws the same Error on all ranks; not_found or corrupt if the prefix cannot give one of
/// them.
void fetch(const comm::Group& group, store::NodeStore& store, std::span<const FetchOrder> fetches,
           const RecoverySettings& settings, Recovered& recovered);

/// COLLECTIVE. Afterwards every owner has its container, sealed. Throws the same Error on all ranks: the step that
/// failed gives up what it made; what earlier steps sealed stays, and the next look finds it.
[[nodiscard]] Recovered execute_orders(const comm::Group& group, store::NodeStore& store, const Orders& orders,
                                       const RecoverySettings& settings);

}  // namespace kedge::recovery
