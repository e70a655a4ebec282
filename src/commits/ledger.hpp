// Ledger of a run's commits: how far each has come, which are ruled out, which must be kept.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// A commit that every rank can recover from the stores.
struct Entry {
  CommitHead commit;
  Level in_stores = Level::local;  ///< local or protected
  Id128 protection_id = {};        ///< of the parity that counts; none: unknown, or there is none
  bool persistent = false;         ///< the prefix has it

  /// The highest level that it has reached.
  [[nodiscard]] Level level() const noexcept { return persistent ? Level::persistent : in_stores; }
};

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
/// any thread.
///
/// Transitions: survey (everything anew), require_survey, take_snapshot, drop_snapshot, commit, open, prove,
/// set_parent; of one commit protect, prefer, unprotect, set_persistent, exclude, drop_damaged and exclude_damaged;
/// lose, when nothing could be opened; retire and discard_newer, which drop entries; set_commits_exist and clear.
class Ledger {
 public:
  // Queries.

  /// False until survey(), and again once a commit turned out damaged: then look before you overwrite anything.
  [[nodiscard]] bool is_surveyed() const;
  /// Whether the next create is to survey first, as after require_survey(). Ranks may learn of it one after the other.
  [[nodiscard]] bool must_survey() const;
  /// Newest first.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// The newest checkpoint, whatever outputs there are.
  [[nodiscard]] std::optional<Entry> newest() const;
  /// Outputs that are to be on the prefix, and are not yet; the oldest first.
  [[nodiscard]] std::vector<CommitHead> outputs_to_flush() const;
  /// Outputs that are not on the prefix: outputs_to_flush(), and outputs of other numbers of ranks, which this start
  /// cannot flush and which stay in the stores. The oldest first.
  [[nodiscard]] std::vector<CommitHead> unflushed_outputs() const;
  /// The newest commit of this tag: among the entries, and the last outputs that left them for the prefix.
  [[nodiscard]] std::optional<Entry> find(std::string_view tag) const;
  /// Whether a commit has this level: one of the entries, or of the last outputs that left them for the prefix.
  [[nodiscard]] bool has_reached(const Id128& commit_id, Level level) const;
  /// Among the entries alone.
  [[nodiscard]] std::optional<Entry> find(const Id128& commit_id) const;
  /// The commit whose containers are not sealed yet, if there is one. It is not among the entries.
  [[nodiscard]] std::optional<CommitHead> snapshot() const;
  /// The newest commit of this tag; may be a snapshot.
  [[nodiscard]] std::optional<CommitHead> newest_of(std::string_view tag) const;
  /// Level of the newest commit of this tag; none if it is not known.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// The commit that was opened or committed last: parent of the next. None before the first.
  [[nodiscard]] Id128 parent_id() const;
  /// A commit of this run has returned once, so that a start that finds none must not begin from zero.
  [[nodiscard]] bool commits_exist() const;
  /// No commit could be opened, and none was made since.
  [[nodiscard]] bool is_lost() const;
  /// Why a commit is not to be opened; empty if nothing is known against it.
  [[nodiscard]] std::string why_excluded(const Id128& commit_id) const;
  [[nodiscard]] std::set<Id128> excluded() const;
  /// The commits that retire(keep) would keep for their own sake, newest first.
  [[nodiscard]] std::vector<Id128> ids_to_keep(std::uint32_t keep) const;

  // Generations.

  /// One more than all seen; counts as seen from now on.
  [[nodiscard]] std::uint64_t take_generation();
  /// Generations up to this one are taken.
  void raise_generation(std::uint64_t seen);
  [[nodiscard]] std::uint64_t highest_generation() const;

  // Transitions.

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
  /// Whether there is such a commit, of which not all ranks have said so.
  [[nodiscard]] bool has_unverified() const;
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
  void exclude(const Id128& commit_id, std::string why);
  /// Nothing could be opened.
  void lose();
  /// Checkpoints newer than this were discarded. Outputs are not: nothing is restarted from one.
  void discard_newer(std::uint64_t generation);
  /// Commits on the prefix were pinned, unpinned or discarded: a cached listing of the prefix must be refreshed.
  void mark_prefix_changed();
  /// How often that was.
  [[nodiscard]] std::uint64_t prefix_changes() const;
  /// Some storage says that commits exist.
  void set_commits_exist();
  /// All commits were removed on purpose.
  void clear();
  /// Drops the entries that newer ones supersede (retention.hpp), but not the parent's. What stays on the stores: those
  /// that are left, what is undecided, and outputs of others.
  [[nodiscard]] RetentionPlan retire(std::uint32_t keep);

 private:
  /// The newest of this tag.
  [[nodiscard]] const Entry* find_entry(std::string_view tag) const;
  [[nodiscard]] const Entry* find_known(std::string_view tag) const;
  [[nodiscard]] const Entry* find_entry(const Id128& commit_id) const;
  [[nodiscard]] Entry* find_entry(const Id128& commit_id);
  [[nodiscard]] std::vector<bool> stays(std::uint32_t keep) const;
  void remember(const Entry& output);
  void add(Entry entry);
  void check() const;

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;          ///< newest first
  std::vector<Entry> flushed_outputs_;  ///< newest first; no longer among the entries
  std::optional<CommitHead> snapshot_;
  std::set<Id128> undecided_;
  std::vector<CommitHead> outputs_of_others_;
  std::map<Id128, std::string> excluded_;
  Id128 parent_id_;
  Id128 unproven_;       ///< what was opened, as long as it may turn out damaged and nothing newer was committed
  Id128 opened_output_;  ///< none: nothing, or a checkpoint, was opened last
  std::uint64_t tier_changes_ = 0;
  std::uint64_t highest_generation_ = 0;
  bool surveyed_ = false;
  bool survey_required_ = false;
  bool commits_exist_ = false;
  bool lost_ = false;
};

}  // namespace kedge::commits
