// Which of a run's commits stay where they were published.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "persist/run_records.hpp"
#include "persist/tier.hpp"

namespace kedge::persist {

/// Local. This run's and this user's, newest first: what others put there under the run's id is not this run's.
[[nodiscard]] std::vector<TagEntry> own_commits(Tier& tier, const Id128& run_id);

struct TierRetention {
  Id128 run_id;
  std::uint64_t keep = 0;  ///< 0: all
  std::set<Id128> spared;  ///< never removed
  std::set<Id128> no_use;  ///< known not to be recoverable: an older one must not go for them
};

struct Retained {
  std::vector<TagEntry> removed;   ///< commits that do not exist there any more
  std::optional<Failure> failure;  ///< why not all that may go went; busy: a later start of the run has begun
};

/// Rank 0. Removes the run's commits beyond the newest `keep` that are some use, but pinned ones and those in `spared`.
/// Discarded ones, those whose manifest cannot be read and those in `no_use` are not counted.
[[nodiscard]] Retained retain(Tier& tier, RunRecords& records, const TierRetention& retention);

/// Rank 0. The newest of the run's commits of this tag that is not discarded. Throws not_found if there is none; busy.
void set_pinned(Tier& tier, RunRecords& records, const Id128& run_id, const Tag& tag, bool pinned);

}  // namespace kedge::persist
