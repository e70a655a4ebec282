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
  std::vector<Entry> entries;      ///< newest first
  std::set<Id128> undecided = {};  ///< whose files must stay until the next commit: of other rank counts or
                                   ///< runs, or lost with a node that may come back
  std::uint64_t highest_generation = 0;
  bool commits_exist = false;                      ///< a record shows that a commit of this run has returned once
  std::vector<CommitHead> outputs_of_others = {};  ///< of other rank counts and not on the prefix; oldest first
};

/// Which files in the stores must stay.
struct RetentionPlan {
  std::map<Id128, Id128> kept;  ///< commits, each with the protection to keep; none keeps all protections
  std::uint64_t newest = 0;     ///< generation of the newest known commit
  bool keeps_all = false;       ///< storage must be surveyed before files may go

  [[nodiscard]] bool keeps(const Id128& commit_id, const Id128& protection_id) const;
};

/// All ranks make the same calls with the same arguments, so their ledgers are equal. The ledger neither communicates
/// nor does I/O. It is the only state shared by engine calls. Thread-safe.
///
/// Transitions: survey (replaces everything), require_survey, take_snapshot, drop_snapshot, commit, open, prove,
/// set_parent; for one commit protect, prefer, unprotect, set_persistent, exclude, drop_damaged and exclude_damaged;
/// lose, if nothing could be opened; retire and discard_newer, which drop entries; set_commits_exist and clear.
class Ledger {
 public:
  [[nodiscard]] KnownCommits known() const;
  [[nodiscard]] Generations& generations() noexcept { return generations_; }
  [[nodiscard]] const Generations& generations() const noexcept { return generations_; }
  [[nodiscard]] const ExcludedCommits& excluded() const noexcept { return excluded_; }

  /// All of it anew, but for what is excluded and the parent.
  void survey(SurveyResult found);
  /// A file of an older commit was found damaged after the survey, so other files may have to stay.
  void require_survey();
  /// Copied on every rank, but not sealed. commit() or drop_snapshot() must follow.
  void take_snapshot(const CommitHead& head);
  /// The snapshot could not be sealed.
  void drop_snapshot();
  /// A new commit was sealed on all ranks. An output never becomes a parent, and changes nothing else.
  void commit(const CommitHead& head);
  /// Every rank has its container of this commit. A checkpoint becomes the parent of the next commit; an output only
  /// stays until then. `proven`: its bytes were verified or need not be; otherwise nothing is retired before confirm().
  void open(const CommitHead& head, bool persistent, bool proven = true);
  /// All ranks verified the commit that open() got as not proven: commits that it supersedes may be retired.
  void confirm(const Id128& commit_id);
  /// Sets the parent of the next commit: a Source was opened, or the opened commit turned out damaged.
  void set_parent(const Id128& commit_id);
  void protect(const Id128& commit_id, const Id128& protection_id);
  /// Only this protection of the commit need be kept; none: all of them. The level stays.
  void prefer_protection(const Id128& commit_id, const Id128& protection_id);
  /// The commit has level local, whatever protections are in the stores.
  void set_unprotected(const Id128& commit_id);
  void set_persistent(const Id128& commit_id, bool persistent);
  /// An opened commit turned out damaged but may be rebuilt. Removes the entry and requires a survey.
  void drop_damaged(const Id128& commit_id);
  /// An opened commit turned out damaged and must not be opened again: drop_damaged() and exclude().
  void exclude_damaged(const Id128& commit_id, std::string why);
  /// The commit must not be opened again.
  void exclude(const Id128& commit_id, std::string why) { excluded_.add(commit_id, std::move(why)); }
  /// Nothing could be opened.
  void mark_lost();
  /// Checkpoints newer than this were discarded. Outputs stay: no restart uses them.
  void discard_newer(std::uint64_t generation);
  /// Commits on the prefix were pinned, unpinned or discarded: cached listings of the prefix are outdated.
  void mark_prefix_changed();
  /// Some storage says that commits exist.
  void set_commits_exist();
  /// All commits were removed on purpose.
  void clear();
  /// Drops entries that newer ones supersede (retention.hpp), except the parent. The stores keep the rest, undecided
  /// commits, and outputs of others.
  [[nodiscard]] RetentionPlan retire(std::uint32_t keep);

 private:
  /// Changes the entry of this commit, if there is one.
  template <class Change>
  void change(const Id128& commit_id, const Change& change);
  void remember(const Entry& output);
  void add(Entry entry);
  void check() const;

  mutable std::mutex mutex_;
  KnownCommits known_;
  Generations generations_;
  ExcludedCommits excluded_;
};

}  // namespace kedge::commits
