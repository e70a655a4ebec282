// Retention of a run's commits on the prefix.
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

/// Returns the commits of this run that belong to this user, newest first; those that others put there under the run's
/// id are not this run's. Local.
[[nodiscard]] std::vector<TagEntry> list_own_commits(PrefixReader& reader, const Id128& run_id);

/// Rank 0's list of the run's commits on the prefix. It is read once and kept up to date from then on, so that the cost
/// of a commit does not grow with their number. Pins by other processes are seen before a commit is removed; their
/// unpins, when the list is read again.
class PrefixCommitList {
 public:
  /// Returns the commits, newest first.
  [[nodiscard]] const std::vector<TagEntry>& list_run_commits(PrefixReader& reader, const Id128& run_id);
  void add_published(const TagEntry& entry);
  void remove_retracted(const Id128& commit_id);
  /// Forgets everything, after commits were pinned or discarded.
  void clear() {
    entries_.reset();
    readable_.clear();
  }

  /// Whether the commit's manifest was read and is good.
  [[nodiscard]] bool is_known_readable(const Id128& commit_id) const { return readable_.contains(commit_id); }
  void mark_readable(const Id128& commit_id) { readable_.insert(commit_id); }
  /// Marks a commit that another process pinned since the list was read.
  void mark_pinned(const Id128& commit_id);
  /// Whether removing the commit failed once in this start.
  [[nodiscard]] bool is_unremovable(const Id128& commit_id) const { return unremovable_.contains(commit_id); }
  void mark_unremovable(const Id128& commit_id) { unremovable_.insert(commit_id); }

 private:
  std::optional<std::vector<TagEntry>> entries_;  ///< nothing until they are needed
  std::set<Id128> readable_;
  std::set<Id128> unremovable_;
};

struct PrefixRetention {
  Id128 run_id;
  std::uint64_t prefix_keep = 0;  ///< 0: all
  std::set<Id128> always_kept;    ///< never removed
  std::set<Id128> unrecoverable;  ///< known to be unrecoverable: they do not count, so an older one stays instead
};

struct RetractionResult {
  std::vector<TagEntry> retracted;  ///< commits that no longer exist; their containers are still there
  /// Commits beyond prefix_keep that are still there, including pinned and spared ones, because time ran out.
  std::size_t remaining_count = 0;
  std::optional<Failure> failure;  ///< why not all were retracted; busy: a later start of the run has begun
};

/// Retracts the run's checkpoints beyond the newest `prefix_keep` recoverable ones, except pinned ones and those in
/// `always_kept`, the oldest first, until `should_stop` returns true. Discarded ones, those whose manifest cannot be
/// read and those in `unrecoverable` are not counted. Rank 0.
[[nodiscard]] RetractionResult retract_old_commits(const PrefixStorage& prefix, const PrefixMarkers& markers,
                                                   PrefixCommitList& history, const PrefixRetention& retention,
                                                   const fs::ShouldStop& should_stop = {});

/// Returns the bytes of all commits that retract_old_commits() may remove. Rank 0.
[[nodiscard]] std::uint64_t removable_bytes(PrefixReader& reader, const PrefixMarkers& markers,
                                            PrefixCommitList& history, const PrefixRetention& retention);

/// Pins or unpins the newest of the run's commits of this tag that is not discarded. Throws not_found if there is none;
/// busy. Rank 0.
void set_pinned(const PrefixStorage& prefix, const PrefixMarkers& markers, const Id128& run_id, const Tag& tag,
                bool pinned);

}  // namespace kedge::persist
