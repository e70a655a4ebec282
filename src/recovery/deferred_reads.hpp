// Files whose verification can be left for later.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "recovery/orders.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

struct DeferredReads {
  std::vector<store::FileKey> files;  ///< keys of this process's own files
  bool own_container = false;         ///< whether the container is read by whoever loads from it; the same on every
                                      ///< rank
};

/// COLLECTIVE. Files that the orders will have read whole, and, if whoever `loads` will check it, the commit's
/// container. Nothing if a commit that fails for what is read so late would cost more than time: on some rank, files
/// that an older commit may need then are written over.
[[nodiscard]] DeferredReads plan_deferred_reads(const comm::Group& group, store::NodeStore& store,
                                                const Candidate& chosen, const Orders& orders, bool loads);

}  // namespace kedge::recovery
