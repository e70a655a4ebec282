// Home processes: each collects which processes have the containers of its logical ranks and the files of its sets. No
// process collects everything.
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

/// A container in one process's store.
struct LocalContainer {
  CommitHead commit;
  LogicalRank logical_rank;
  std::uint64_t size_bytes = 0;
  bool intact = false;
  std::string damage;  ///< why it is not intact; may be empty
};

/// All files of one process. Set files are intact descriptors and parity, distinguished by kind.
struct LocalFiles {
  std::vector<LocalContainer> containers;
  std::vector<format::SetDescriptor> set_files;
  std::vector<CommitHead> copied = {};  ///< commits of container copies
  int domain = 0;                       ///< the lowest process in the failure domain of this one
};

inline constexpr int kNoProcess = -1;

/// Identifies a container; the logical rank determines its home.
struct RankKey {
  std::uint64_t generation = 0;
  Id128 commit_id;
  std::uint32_t world_size = 0;
  std::uint32_t logical_rank = 0;
  auto operator<=>(const RankKey&) const = default;
};

/// A set that contains the logical rank.
struct CandidateSet {
  int home = kNoProcess;
  std::uint32_t index = 0;  ///< in the home's list of sets
  bool decodable = false;   ///< all of the set's missing containers can be rebuilt
  bool whole = false;       ///< it survives the loss of a failure domain as it is
  std::uint64_t size_bytes = 0;
};

struct HomedRank {
  int holder = kNoProcess;  ///< process with the container: preferably its owner, else the lowest
  int domain = kNoProcess;  ///< the holder's failure domain
  std::uint64_t size_bytes = 0;
  std::vector<CandidateSet> candidate_sets;  ///< sorted by home, then index

  /// The set that can rebuild the container; null if there is none.
  [[nodiscard]] const CandidateSet* find_rebuilding_set() const noexcept;
  [[nodiscard]] bool is_protected() const noexcept;
};

/// A redundancy set as known to its home. Holders are processes, by position.
struct HomedSet {
  format::SetDescriptor set;
  std::vector<int> container;
  std::vector<int> parity;
  std::vector<int> descriptor;
  std::vector<int> domain;  ///< of the containers' holders
  bool decodable = false;
  /// Nothing is missing. Of a commit that stays as it lies, members are in different failure domains, too; those of
  /// others go to their owners, and are judged there.
  bool whole = false;
};

/// Logical ranks and sets whose home is this process.
struct Homes {
  std::map<RankKey, HomedRank> ranks;
  std::vector<HomedSet> sets;
};

/// The process that owns a logical rank's files in this job.
[[nodiscard]] int owner_of(LogicalRank logical_rank, const comm::Group& group) noexcept;

/// Whether the files of a commit of so many ranks stay where they are: this job has no owners for them.
[[nodiscard]] bool stays_as_it_lies(std::uint32_t world_size, const comm::Group& group) noexcept;

/// COLLECTIVE. All processes tell the homes which files they have, and homes of sets and of logical ranks exchange what
/// can be rebuilt. Takes a fixed number of sparse exchanges.
[[nodiscard]] Homes exchange_local_files(const comm::Group& group, const LocalFiles& mine);

}  // namespace kedge::recovery
