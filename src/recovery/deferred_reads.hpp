// Decides which files need not be verified during open.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "recovery/orders.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

struct DeferredReads {
  std::vector<store::FileKey> files;     ///< this process's own files
  std::vector<store::FileKey> anyone_s;  ///< files of any rank in this store
  bool containers = false;               ///< who reads the containers verifies them; equal on all ranks
};

/// COLLECTIVE. Files that the orders use and that can be verified later, including the commit's containers if the
/// application `loads` and so verifies them. Empty if the orders overwrite, on any rank, files that an older commit may
/// need: damage found late would then cost that commit.
[[nodiscard]] DeferredReads plan_deferred_reads(const comm::Group& group, store::NodeStore& store,
                                                const Candidate& chosen, const Orders& orders, bool loads);

}  // namespace kedge::recovery
