// Lost containers and parity are rebuilt from what the other members of their sets hold.
#pragma once

#include <span>

#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

/// COLLECTIVE over all ranks; all that is present must lie with its owner. Rebuilds the containers and parity that
/// are missing in sets to rebuild, and descriptors where an owner has none. A rebuilt container is checked against its
/// recorded CRC32C before it is sealed. Throws the same Error on all ranks.
void rebuild(const comm::Group& group, store::NodeStore& store, std::span<const SetOrder> sets,
             const RecoverySettings& settings, Recovered& recovered);

}  // namespace kedge::recovery
