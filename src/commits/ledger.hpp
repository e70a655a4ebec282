// The ledger of a run's commits: the level of each, and which are excluded or must be kept.
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

/// A commit that all ranks can recover.
struct Entry {
  CommitHead commit;
  Level in_stores = Level::local;  ///< local or protected
  Id128 protection_id = {};        ///< of the preferred parity; none if unknown or if there is no parity
  bool persistent = false;         ///< on the prefix

  [[nodiscard]] Level level() const noexcept { return persistent ? Level::persistent : in_stores; }
};

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
  // Queries.

  /// False until survey(), and again once a commit turned out damaged: survey before overwriting files.
  [[nodiscard]] bool is_surveyed() const;
  /// Whether the next create must survey first. After require_survey(), ranks may learn of it at different times.
  [[nodiscard]] bool must_survey() const;
  /// Newest first.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// The newest checkpoint, ignoring outputs.
  [[nodiscard]] std::optional<Entry> newest() const;
  /// Outputs still to be flushed, oldest first.
  [[nodiscard]] std::vector<CommitHead> outputs_to_flush() const;
  /// Outputs that are not on the prefix, oldest first: outputs_to_flush() and outputs of other rank counts, which this
  /// start cannot flush and which stay in the stores.
  [[nodiscard]] std::vector<CommitHead> unflushed_outputs() const;
  /// The newest commit of this tag, including recent outputs that left the entries after their flush.
  [[nodiscard]] std::optional<Entry> find(std::string_view tag) const;
  /// Whether a commit has this level, including recent outputs that left the entries after their flush.
  [[nodiscard]] bool has_reached(const Id128& commit_id, Level level) const;
  /// Searches the entries only.
  [[nodiscard]] std::optional<Entry> find(const Id128& commit_id) const;
  /// The commit whose containers are not sealed yet, if any; it is not an entry.
  [[nodiscard]] std::optional<CommitHead> snapshot() const;
  /// The newest commit of this tag, including a snapshot.
  [[nodiscard]] std::optional<CommitHead> newest_of(std::string_view tag) const;
  /// Level of the newest commit of this tag; none if unknown.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// The commit opened or committed last, which becomes the next commit's parent; none before the first.
  [[nodiscard]] Id128 parent_id() const;
  /// A commit of this run has returned once: a start that finds none must not begin from zero.
  [[nodiscard]] bool commits_exist() const;
  /// No commit could be opened, and none was made since.
  [[nodiscard]] bool is_lost() const;
  /// Why a commit must not be opened; empty if it may.
  [[nodiscard]] std::string why_excluded(const Id128& commit_id) const;
  [[nodiscard]] std::set<Id128> excluded() const;
  /// The commits that retire(keep) keeps by policy, newest first.
  [[nodiscard]] std::vector<Id128> ids_to_keep(std::uint32_t keep) const;

  // Generations.

  /// Returns the next unused generation and marks it used.
  [[nodiscard]] std::uint64_t take_generation();
  /// Marks generations up to this one as used.
  void raise_generation(std::uint64_t seen);
  [[nodiscard]] std::uint64_t highest_generation() const;

  // Transitions.

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
  /// stays until then. `proven`: its bytes were verified or need not be; otherwise nothing is retired before prove().
  void open(const CommitHead& head, bool persistent, bool proven = true);
  /// All ranks verified the commit that open() got as not proven: commits that it supersedes may be retired.
  void prove(const Id128& commit_id);
  /// Whether a commit opened as not proven awaits prove().
  [[nodiscard]] bool has_unverified() const;
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
  void exclude(const Id128& commit_id, std::string why);
  /// No commit could be opened.
  void lose();
  /// Checkpoints newer than this were discarded. Outputs stay: no restart uses them.
  void discard_newer(std::uint64_t generation);
  /// Commits on the prefix were pinned, unpinned or discarded: cached listings of the prefix are outdated.
  void mark_prefix_changed();
  /// Number of mark_prefix_changed() calls.
  [[nodiscard]] std::uint64_t prefix_changes() const;
  /// A record shows that commits exist.
  void set_commits_exist();
  /// All commits were removed on purpose.
  void clear();
  /// Drops entries that newer ones supersede (retention.hpp), except the parent. The stores keep the rest, undecided
  /// commits, and outputs of others.
  [[nodiscard]] RetentionPlan retire(std::uint32_t keep);

 private:
  /// The newest entry of this tag.
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
  std::vector<Entry> flushed_outputs_;  ///< newest first; not in entries_
  std::optional<CommitHead> snapshot_;
  std::set<Id128> undecided_;
  std::vector<CommitHead> outputs_of_others_;
  std::map<Id128, std::string> excluded_;
  Id128 parent_id_;
  Id128 unproven_;       ///< opened and not yet proven, while nothing newer was committed
  Id128 opened_output_;  ///< none if nothing or a checkpoint was opened last
  std::uint64_t tier_changes_ = 0;
  std::uint64_t highest_generation_ = 0;
  bool surveyed_ = false;
  bool survey_required_ = false;
  bool commits_exist_ = false;
  bool lost_ = false;
};

}  // namespace kedge::commits
