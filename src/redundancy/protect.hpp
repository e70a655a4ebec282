// Makes and seals the parity of a commit, for all sets in one collective step.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "redundancy/exchange.hpp"
#include "store/node_store.hpp"
#include "store/store_file.hpp"

namespace kedge::redundancy {

/// A commit and parameters of its protection.
struct ProtectRequest {
  CommitHead commit;
  LogicalRank logical_rank;               ///< rank of this process's container
  store::StoreFile* container = nullptr;  ///< the caller keeps it pinned
  Id128 protection_id;                    ///< equal on every rank
  Scheme scheme = Scheme::xor_;
  std::uint32_t parity_count = 1;  ///< for rs: tolerated losses per set
  std::uint64_t set_number = 0;
};

/// Result and cost of a protection on this rank.
struct ProtectResult {
  std::optional<Failure> failure;  ///< the first one, alike on all ranks; nothing of the protection remains
  std::uint64_t parity_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

/// COLLECTIVE over all ranks. Verifies the container's checksums while reading it, so that corrupt data is not
/// protected. Other protections of the commit stay as they are. Throws only what ends communication.
[[nodiscard]] ProtectResult protect(const comm::Group& group, store::NodeStore& store, const ProtectRequest& subject,
                                    const Membership& membership, bool durable, const ExchangeSettings& traffic);

}  // namespace kedge::redundancy
