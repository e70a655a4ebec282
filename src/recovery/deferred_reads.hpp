// Decides which files need not be verified during open.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "recovery/orders.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

struct DeferredReads {
  std::vector<store::FileKey> files;  ///< this process's own files
  bool own_container = false;         ///< the reader of the container verifies it; equal on all ranks
};

/// COLLECTIVE. Files that the orders use and that can be verified later, including the commit's container if the
/// application `loads` and so verifies it. Empty if the orders overwrite, on any rank, files that an older commit may
/// need: damage found late would then cost that commit.
[[nodiscard]] DeferredReads plan_deferred_reads(const comm::Group& group, store::NodeStore& store,
                                                const Candidate& chosen, const Orders& orders, bool loads);

}  // namespace kedge::recovery
