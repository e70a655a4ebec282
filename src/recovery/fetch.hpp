// Containers come back from the prefix.
#pragma once

#include <span>

#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

/// COLLECTIVE over all ranks. Each container is copied byte for byte, compared with the checksum that the manifest has
/// of it, and sealed last. Throws the same Error on all ranks; not_found or corrupt if the prefix cannot give one of
/// them.
void fetch(const comm::Group& group, store::NodeStore& store, std::span<const FetchOrder> fetches,
           const RecoverySettings& settings, Recovered& recovered);

}  // namespace kedge::recovery
