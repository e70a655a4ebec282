// The ledger of a run's commits: the level of each, and which are excluded or must be kept.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commits/excluded_commits.hpp"
#include "commits/generations.hpp"
#include "commits/known_commits.hpp"
#include "kedge/types.hpp"

namespace kedge::commits {

/// Result of a survey of all storage.
struct SurveyResult {
  std::vector<CommitEntry> entries;  ///< newest first
  /// Commits whose files must stay until the next commit: of other rank counts or runs, or lost with a node that may
  /// come back.
  std::set<Id128> undecided = {};
  std::uint64_t highest_generation = 0;
  bool commits_exist = false;  ///< a record shows that a commit of this run has returned once
  /// Outputs of other rank counts that are not on the prefix; oldest first.
  std::vector<CommitHead> outputs_of_others = {};
};

/// Which files in the stores must stay.
struct RetentionPlan {
  std::map<Id128, Id128> kept_protections;  ///< commits, each with the protection to keep; none keeps all protections
  std::uint64_t newest_generation = 0;      ///< generation of the newest known commit
  bool keeps_all = false;                   ///< storage must be surveyed before files may go

  [[nodiscard]] bool is_kept(const Id128& commit_id, const Id128& protection_id) const;
};

/// The commits of a run as this rank knows them. All ranks make the same calls with the same arguments, so their
/// ledgers are equal. The ledger neither communicates nor does I/O; it is the only state that engine calls share.
/// Thread-safe.
class Ledger {
 public:
  [[nodiscard]] KnownCommits known() const;
  [[nodiscard]] Generations& generations() noexcept { return generations_; }
  [[nodiscard]] const Generations& generations() const noexcept { return generations_; }
  [[nodiscard]] const ExcludedCommits& excluded() const noexcept { return excluded_; }

  /// Replaces all but the excluded commits and the parent by the result of a survey.
  void apply_survey(SurveyResult found);
  /// Requires a survey before the next commit: a file of an older commit was found damaged, so other files may have to
  /// stay.
  void require_survey();
  /// Adds a snapshot: a commit that is copied on every rank, but not sealed. add_commit() or drop_snapshot() must
  /// follow.
  void add_snapshot(const CommitHead& head);
  /// Removes the snapshot, which could not be sealed.
  void drop_snapshot();
  /// Adds a commit that was sealed on all ranks. An output never becomes a parent, and changes nothing else.
  void add_commit(const CommitHead& head);
  /// Records that every rank has its container of this commit. A checkpoint becomes the parent of the next commit; an
  /// output only stays until then. `proven`: its bytes were verified or need not be; otherwise nothing is retired
  /// before mark_verified().
  void mark_opened(const CommitHead& head, bool persistent, bool proven = true);
  /// Records that all ranks verified the commit that mark_opened() got as not proven: commits that it supersedes may be
  /// retired.
  void mark_verified(const Id128& commit_id);
  /// Sets the parent of the next commit, after a Source was opened or the opened commit was found damaged.
  void set_parent(const Id128& commit_id);
  /// Records that the commit is protected by this protection.
  void set_protected(const Id128& commit_id, const Id128& protection_id);
  /// Keeps only this protection of the commit, or all if the id is none. The level stays.
  void prefer_protection(const Id128& commit_id, const Id128& protection_id);
  /// Sets the commit's level to local, whatever protections are in the stores.
  void set_unprotected(const Id128& commit_id);
  void set_persistent(const Id128& commit_id, bool persistent);
  /// Removes the entry of an opened commit that was found damaged but may be rebuilt, and requires a survey.
  void drop_damaged(const Id128& commit_id);
  /// Excludes an opened commit that was found damaged: drop_damaged() and exclude().
  void exclude_damaged(const Id128& commit_id, std::string why);
  /// Excludes a commit from being opened again.
  void exclude(const Id128& commit_id, std::string why) { excluded_.add(commit_id, std::move(why)); }
  /// Records that no commit could be opened.
  void mark_lost();
  /// Removes checkpoints newer than this generation, which were discarded. Outputs stay: no restart uses them.
  void discard_newer(std::uint64_t generation);
  /// Records that commits on the prefix were pinned, unpinned or discarded: cached lists of the prefix are outdated.
  void mark_prefix_changed();
  /// Records that some storage says that commits exist.
  void set_commits_exist();
  /// Removes all commits, which were removed from storage on purpose.
  void clear();
  /// Removes entries that newer ones supersede (retention.hpp), except the parent. Returns what the stores must keep:
  /// the other entries, undecided commits, and outputs of others.
  [[nodiscard]] RetentionPlan retire_superseded(std::uint32_t store_keep);

 private:
  /// Changes the entry of this commit, if there is one.
  template <class Change>
  void change_entry(const Id128& commit_id, const Change& change);
  void remember_output(const CommitEntry& output);
  void add_entry(CommitEntry entry);
  void check_invariants() const;

  mutable std::mutex mutex_;
  KnownCommits known_;
  Generations generations_;
  ExcludedCommits excluded_;
};

}  // namespace kedge::commits
