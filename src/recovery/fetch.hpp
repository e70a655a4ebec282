// Copies containers from the prefix to the stores.
#pragma once

#include <span>

#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

/// COLLECTIVE over all ranks. Copies each container, compares it with its checksum in the manifest, and seals it.
/// Throws the same Error on all ranks; not_found or corrupt if the prefix cannot provide a container.
void fetch(const comm::Group& group, store::NodeStore& store, std::span<const FetchOrder> fetches,
           const RecoverySettings& settings, Recovered& recovered);

}  // namespace kedge::recovery
