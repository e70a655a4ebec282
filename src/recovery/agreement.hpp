// Decides which commits the node-local stores can provide. Home processes collect what is known of each commit; no
// process collects everything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "recovery/homes.hpp"

namespace kedge::recovery {

/// Description of one process's store, for messages.
struct StoreReport {
  std::string directory;   ///< of the node-local store
  std::string unreadable;  ///< damage of files whose commit cannot be read; may be empty
};

/// Reason for commits that the application discarded.
inline constexpr std::string_view kDiscarded = "it was discarded when an older one was opened";

/// Why a job of `of_job` ranks cannot recover a commit of `of_commit` ranks; empty if it can.
[[nodiscard]] std::string other_world_size(std::uint32_t of_commit, std::uint32_t of_job, OtherRanks other_ranks);

/// A commit of which files were found; equal on all ranks.
struct Candidate {
  CommitHead commit;
  std::uint64_t total_bytes = 0;  ///< of available and rebuildable containers
  std::uint32_t held = 0;         ///< containers in the stores
  std::uint32_t rebuilt = 0;      ///< missing containers that a set can rebuild
  bool in_stores = false;         ///< the stores have or can rebuild all containers
  bool recoverable = false;       ///< from stores and prefix together, and not excluded
  bool is_protected = false;      ///< every container is in a set of which nothing is missing
  bool persistent = false;        ///< the prefix has it
  std::string directory;          ///< tag directory on the prefix, if it may be fetched
  bool discarded = false;         ///< by the application
  std::string reason;             ///< why it is not recoverable; may be empty
};

/// The agreed candidates, and this process's knowledge as a home, from which orders are made.
struct Agreement {
  std::vector<Candidate> candidates;  ///< newest first
  /// Damage of files whose commit cannot be read, as reported by the lowest rank; may be empty.
  std::string unreadable;
  Homes homes;
};

/// COLLECTIVE. Each logical rank of a commit has a home process (rank mod processes), as has each redundancy set; every
/// process tells the homes which files it has. The home counts a logical rank once if its container exists or can be
/// rebuilt; a commit is recoverable iff the counts add up to its world size. `mine` are this process's files; messages
/// use `report`. With OtherRanks::refuse, commits of another world size than the group's are not recoverable, with that
/// as reason.
[[nodiscard]] Agreement agree_on_commits(const comm::Group& group, const LocalFiles& mine, const StoreReport& report,
                                         OtherRanks other_ranks = OtherRanks::accept);

}  // namespace kedge::recovery
