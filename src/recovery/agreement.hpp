// Which commits the node-local stores can give: what every process holds, judged per commit id, without gathering it
// all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.hpp"
#include "kedge/types.hpp"
#include "recovery/homes.hpp"

namespace kedge::recovery {

/// Where one process looked.
struct StoreReport {
  std::string directory;   ///< directory of its node-local store
  std::string unreadable;  ///< damage in files there that named no commit, or empty
};

/// Why a commit that the application gave up is not recoverable.
inline constexpr std::string_view kDiscarded = "it was discarded when an older one was opened";

/// Why this job cannot recover a commit of this many ranks, empty if it can.
[[nodiscard]] std::string other_world_size(std::uint32_t of_commit, std::uint32_t of_job);

/// One commit of which something was found, the same on every rank.
struct Candidate {
  CommitHead commit;
  std::uint64_t total_bytes = 0;  ///< of the containers that are held or can be rebuilt
  std::uint32_t rebuilt = 0;      ///< containers that nobody holds and a set can rebuild
  bool in_stores = false;         ///< the stores can give all of it: held, or rebuilt
  bool recoverable = false;       ///< from the stores, the prefix, or both, and not ruled out
  bool is_protected = false;      ///< every container belongs to a set of which nothing is missing
  bool persistent = false;        ///< the prefix has it too
  std::string directory;          ///< its tag directory there, if the containers may be fetched from it
  bool discarded = false;         ///< given up on purpose, by the application
  std::string reason;             ///< why it is not recoverable
};

/// The candidates that the ranks agreed on, and this process's part as a home: orders are made from it.
struct Agreement {
  std::vector<Candidate> candidates;  ///< newest first
  /// Damage in files so broken that no commit could be read from them: the lowest rank's, or empty.
  std::string unreadable;
  Homes homes;
};

/// COLLECTIVE. Each logical rank of a commit has a home process (rank mod processes) that is told who holds what of it,
/// and so has each redundancy set. A logical rank counts once, at its home, if its container is held or can be rebuilt;
/// a commit is recoverable iff the counts add up to its world size. `mine` are this process's holdings, `report` is for
/// messages about what it does not hold. A commit of another world size than the group's is not recoverable yet, and
/// its reason says so.
[[nodiscard]] Agreement agree_on_commits(const comm::Group& group, const LocalFiles& mine, const StoreReport& report);

}  // namespace kedge::recovery
