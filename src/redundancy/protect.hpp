// Makes and seals the parity of a commit: every set at once, in one collective step.
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

/// A commit to protect, and the protection that it gets.
struct ProtectRequest {
  CommitHead commit;
  LogicalRank logical_rank;               ///< rank of this process's container
  store::StoreFile* container = nullptr;  ///< pinned by the caller meanwhile
  Id128 protection_id;                    ///< id of this protection, the same on every rank
  Scheme scheme = Scheme::xor_;
  std::uint32_t parities = 1;  ///< of rs
  std::uint64_t set_number = 0;
};

/// Result and cost of a protection on this rank.
struct ProtectResult {
  std::optional<Failure> failure;  ///< first failure, the same on every rank; then nothing of this protection stays
  std::uint64_t parity_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

/// COLLECTIVE over all ranks. The container's checksums are checked as it is read: a flipped bit is not protected as
/// good. Beside parity and descriptors of another protection of the same commit, which stay as they are. Throws
/// only what ends communication.
[[nodiscard]] ProtectResult protect(const comm::Group& group, store::NodeStore& store, const ProtectRequest& subject,
                                    const Membership& membership, bool durable, const ExchangeSettings& traffic);

}  // namespace kedge::redundancy
