// Sealed files go to the processes that own them now.
#pragma once

#include <span>

#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

/// COLLECTIVE over all ranks. Every moved file is verified whole before it is sealed. The copies they came from stay:
/// as long as the commit is not protected where it lies now, it is protected where it lay. Throws the same Error on all
/// ranks.
void relocate(const comm::Group& group, store::NodeStore& store, std::span<const MoveOrder> moves,
              const RecoverySettings& settings, Recovered& recovered);

}  // namespace kedge::recovery
