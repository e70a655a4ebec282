// Which commits can be had again: what every process holds, judged per commit id, without gathering it all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kedge/communicator.hpp"
#include "kedge/types.hpp"

namespace kedge::recovery {

/// What one process says of one container that it can reach.
struct Holding {
  std::uint64_t generation = 0;
  Id128 commit_id;
  Id128 parent_commit_id;
  std::uint64_t incarnation = 0;
  LogicalRank logical_rank;
  std::uint32_t world_size = 0;
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
  std::string tag;
  bool intact = false;
  std::string damage;  ///< why it is not intact
};

/// Where one process looked.
struct Shelf {
  std::string folder;      ///< of its node-local store
  std::string unreadable;  ///< damage in files there that named no commit, or empty
};

/// One commit of which something was found, the same on every rank.
struct Candidate {
  std::uint64_t generation = 0;
  Id128 commit_id;
  Id128 parent_commit_id;
  std::uint64_t incarnation = 0;
  std::uint32_t world_size = 0;
  std::int64_t time_ns = 0;
  std::uint64_t total_bytes = 0;
  std::string tag;
  bool recoverable = false;
  std::string reason;  ///< why it is not
};

/// What the ranks have together: candidates newest first (by generation, then commit id).
struct Survey {
  std::uint32_t processes = 0;  ///< of the communicator that agreed
  std::vector<Candidate> candidates;
  /// Damage in files so broken that no commit could be read from them: the lowest rank's, or empty.
  std::string unreadable;
};

/// COLLECTIVE. Each logical rank of a commit has a home process (rank mod processes) that is told who holds
/// what of it and counts it once; a commit is recoverable iff the counts add up to its world size. `mine` are
/// this process's holdings, `shelf` is for messages about what it does not hold. A commit of another
/// world size than the communicator's is not recoverable yet, and its reason says so.
[[nodiscard]] Survey survey(Communicator& communicator, std::span<const Holding> mine, const Shelf& shelf,
                            Deadline deadline);

}  // namespace kedge::recovery
