// Ledger of a run's commits: how far each has come, which are ruled out, which must be kept.
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
  std::set<Id128> undecided = {};  ///< commits whose files must stay until the next commit: of other rank counts or
                                   ///< runs, or lost with a node that may come back
  std::uint64_t highest_generation = 0;
  bool commits_exist = false;                      ///< some storage says that a commit of this run has returned once
  std::vector<CommitHead> outputs_of_others = {};  ///< of other rank counts and not on the prefix; the oldest first
};

/// Which files on the stores stay.
struct RetentionPlan {
  std::map<Id128, Id128> kept;  ///< commits, each with the one protection that stays; none: all of its protections
  std::uint64_t newest = 0;     ///< generation of the newest commit that was known
  bool keeps_all = false;       ///< what there is has to be surveyed first

  [[nodiscard]] bool keeps(const Id128& commit_id, const Id128& protection_id) const;
};

/// The ledger is the same on every rank, if every rank makes the same calls with the same arguments. It communicates
/// with nobody and does no I/O. It is the only state that calls of the engine share; every member may be called from
/// any thread. Questions go to a copy, known(); every other member is a transition.
class Ledger {
 public:
  [[nodiscard]] KnownCommits known() const;
  [[nodiscard]] Generations& generations() noexcept { return generations_; }
  [[nodiscard]] const Generations& generations() const noexcept { return generations_; }
  [[nodiscard]] const ExcludedCommits& excluded() const noexcept { return excluded_; }

  /// All of it anew, but for what is excluded and the parent.
  void survey(SurveyResult found);
  /// A file of an older commit was found damaged since the survey: others may have to stay.
  void require_survey();
  /// Copied on every rank, and not sealed yet: commit() or drop_snapshot() follows.
  void take_snapshot(const CommitHead& head);
  /// The snapshot could not be sealed.
  void drop_snapshot();
  /// Sealed on every rank. It is newer than all others. An output is nobody's parent, and changes nothing else.
  void commit(const CommitHead& head);
  /// Opened: every rank has its container again. It becomes the parent of the next commit, unless it is an output: that
  /// stays until the next commit, and changes nothing else.
  /// `proven`: its bytes were verified, or nobody wants them to be; else nothing is retired before prove().
  void open(const CommitHead& head, bool persistent, bool proven = true);
  /// The commit that open() was told of as not proven was found whole on all ranks: what it supersedes may be retired.
  void prove(const Id128& commit_id);
  /// Sets the parent of the next commit: a Source was opened, or the opened commit turned out damaged.
  void set_parent(const Id128& commit_id);
  /// The commit is protected by this parity.
  void protect(const Id128& commit_id, const Id128& protection_id);
  /// This one of the commit's protections is worth keeping; none: all are. The commit's level does not change.
  void prefer_protection(const Id128& commit_id, const Id128& protection_id);
  /// The commit is at level local, whatever of its protections lies in the stores.
  void set_unprotected(const Id128& commit_id);
  void set_persistent(const Id128& commit_id, bool persistent);
  /// A commit that was opened turned out damaged, and may yet be rebuilt. It is no longer among the entries, and all
  /// storage is to be surveyed anew.
  void drop_damaged(const Id128& commit_id);
  /// A commit that was opened turned out damaged, and must not be opened again: drop_damaged() and exclude().
  void exclude_damaged(const Id128& commit_id, std::string why);
  /// The commit must not be opened again.
  void exclude(const Id128& commit_id, std::string why) { excluded_.add(commit_id, std::move(why)); }
  /// Nothing could be opened.
  void lose();
  /// Checkpoints newer than this were discarded. Outputs are not: nothing is restarted from one.
  void discard_newer(std::uint64_t generation);
  /// Commits on the prefix were pinned, unpinned or discarded.
  void mark_prefix_changed();
  /// Some storage says that commits exist.
  void set_commits_exist();
  /// All commits were removed on purpose.
  void clear();
  /// Drops the entries that newer ones supersede (retention.hpp), but not the parent's. What stays on the stores: those
  /// that are left, what is undecided, and outputs of others.
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
