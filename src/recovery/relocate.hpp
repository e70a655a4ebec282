// Moves sealed files to the processes that own them now.
#pragma once

#include <span>

#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

/// COLLECTIVE over all ranks. Verifies each received file completely before sealing it. The source files stay: they
/// protect the commit until it is protected at its new location. Throws the same Error on all ranks.
void relocate(const comm::Group& group, store::NodeStore& store, std::span<const MoveOrder> moves,
              const RecoverySettings& settings, Recovered& recovered);

}  // namespace kedge::recovery
