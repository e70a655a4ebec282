// Rebuilds lost containers and parity from other members of their sets.
#pragma once

#include <span>

#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

/// COLLECTIVE over all ranks. Requires that owners have all existing files. Rebuilds missing containers and parity of
/// sets that are to be rebuilt, and writes missing descriptors. Compares each container with its recorded CRC32C before
/// sealing it. Throws the same Error on all ranks.
void rebuild(const comm::Group& group, store::NodeStore& store, std::span<const SetOrder> sets,
             const RecoverySettings& settings, Recovered& recovered);

}  // namespace kedge::recovery
