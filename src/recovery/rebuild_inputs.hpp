// Which files a rebuild reads and checks itself, so that nobody needs to before.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "recovery/orders.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

/// COLLECTIVE. This process's own files of those that the orders will have read whole. None if a recovery that fails
/// for what it reads would cost more than time: on some rank it writes over files that an older commit may need then.
[[nodiscard]] std::vector<store::FileKey> rebuild_inputs(const comm::Group& group, store::NodeStore& store,
                                                         const Candidate& chosen, const Orders& orders);

}  // namespace kedge::recovery
