// Knowledge of each home process: who holds the containers of its logical ranks, and the files of its sets. Nobody is
// told everything.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "format/set_descriptor.hpp"
#include "kedge/types.hpp"

namespace kedge::recovery {

/// One process's statement about one container that it can reach.
struct LocalContainer {
  CommitHead commit;
  LogicalRank logical_rank;
  std::uint64_t size_bytes = 0;
  bool intact = false;
  std::string damage;  ///< why it is not intact
};

/// All that one process holds. Set files are the intact ones: descriptors and parity, told apart by their kind.
struct LocalFiles {
  std::vector<LocalContainer> containers;
  std::vector<format::SetDescriptor> set_files;
  std::vector<CommitHead> copied = {};  ///< commits named by copies of containers
};

inline constexpr int kNoProcess = -1;

/// One container of a commit, decided on by the home of its logical rank.
struct RankKey {
  std::uint64_t generation = 0;
  Id128 commit_id;
  std::uint32_t world_size = 0;
  std::uint32_t logical_rank = 0;
  auto operator<=>(const RankKey&) const = default;
};

/// A set that lists the logical rank.
struct CandidateSet {
  int home = kNoProcess;
  std::uint32_t index = 0;  ///< in the home's list of sets
  bool decodable = false;   ///< every container of the set that is missing can be rebuilt
  bool whole = false;       ///< nothing of the set is missing
  std::uint64_t size_bytes = 0;
};

struct HomedRank {
  int holder = kNoProcess;  ///< the process that has it: the one that owns the logical rank now, else the lowest
  std::uint64_t size_bytes = 0;
  std::vector<CandidateSet> candidate_sets;  ///< by home, then index

  /// The set to rebuild it by, null if there is none.
  [[nodiscard]] const CandidateSet* find_rebuilding_set() const noexcept;
  [[nodiscard]] bool is_protected() const noexcept;
};

/// A redundancy set as its home sees it. Holders are processes, by position.
struct HomedSet {
  format::SetDescriptor set;
  std::vector<int> container;
  std::vector<int> parity;
  std::vector<int> descriptor;
  bool decodable = false;
  bool whole = false;
};

/// Ranks and sets whose home is this process.
struct Homes {
  std::map<RankKey, HomedRank> ranks;
  std::vector<HomedSet> sets;
};

/// The process that a logical rank's files belong to in this job.
[[nodiscard]] int owner_of(LogicalRank logical_rank, const comm::Group& group) noexcept;

/// COLLECTIVE. Everybody tells the homes what it holds, and homes of sets and of logical ranks tell each other what
/// that makes possible: a fixed number of sparse exchanges.
[[nodiscard]] Homes exchange_local_files(const comm::Group& group, const LocalFiles& mine);

}  // namespace kedge::recovery
