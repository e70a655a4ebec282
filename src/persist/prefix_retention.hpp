// Which of a run's commits stay where they were published.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "fs/tree.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/prefix_storage.hpp"

namespace kedge::persist {

/// Local. This run's and this user's, newest first: what others put there under the run's id is not this run's.
[[nodiscard]] std::vector<TagEntry> own_commits(PrefixReader& reader, const Id128& run_id);

/// Rank 0's. The run's commits on a tier: listed once and kept up to date from then on, so that what a commit costs
/// does not grow with their number. What others
/// pin meanwhile is seen when its turn comes; what they unpin, when it is listed again.
class PrefixCommitList {
 public:
  /// Newest first.
  [[nodiscard]] const std::vector<TagEntry>& of_run(PrefixReader& reader, const Id128& run_id);
  void published(const TagEntry& entry);
  void retracted(const Id128& commit_id);
  /// Somebody pinned or discarded commits: all is looked at anew.
  void forget() {
    entries_.reset();
    good_.clear();
  }

  /// Whether its manifest was read and is good.
  [[nodiscard]] bool is_known_good(const Id128& commit_id) const { return good_.contains(commit_id); }
  void mark_good(const Id128& commit_id) { good_.insert(commit_id); }
  /// Somebody pinned it since it was listed.
  void mark_pinned(const Id128& commit_id);
  /// Whether removing it failed once in this start.
  [[nodiscard]] bool is_unremovable(const Id128& commit_id) const { return unremovable_.contains(commit_id); }
  void mark_unremovable(const Id128& commit_id) { unremovable_.insert(commit_id); }

 private:
  std::optional<std::vector<TagEntry>> entries_;  ///< nothing until somebody asked
  std::set<Id128> good_;
  std::set<Id128> unremovable_;
};

struct PrefixRetention {
  Id128 run_id;
  std::uint64_t keep = 0;         ///< 0: all
  std::set<Id128> spared;         ///< never removed
  std::set<Id128> unrecoverable;  ///< known to be: an older one must not go for them
};

struct Retained {
  std::vector<TagEntry> removed;   ///< commits that do not exist there any more; their containers are still there
  std::size_t left = 0;            ///< beyond keep, pinned and spared ones included, for which there was no time
  std::optional<Failure> failure;  ///< why not all that may go went; busy: a later start of the run has begun
};

/// Rank 0. Retracts the run's checkpoints beyond the newest `keep` recoverable ones, but for pinned ones and those
/// in `spared`, the oldest first, until `enough` says so. Discarded ones, those whose manifest cannot be read and those
/// in `unrecoverable` are not counted.
[[nodiscard]] Retained retract_old_commits(const PrefixStorage& prefix, const PrefixMarkers& markers,
                                           PrefixCommitList& history, const PrefixRetention& retention,
                                           const fs::ShouldStop& enough = {});

/// Rank 0. The bytes of all that retract_old_commits() may remove.
[[nodiscard]] std::uint64_t removable_bytes(PrefixReader& reader, const PrefixMarkers& markers,
                                            PrefixCommitList& history, const PrefixRetention& retention);

/// Rank 0. The newest of the run's commits of this tag that is not discarded. Throws not_found if there is none; busy.
void set_pinned(const PrefixStorage& prefix, const PrefixMarkers& markers, const Id128& run_id, const Tag& tag,
                bool pinned);

}  // namespace kedge::persist
