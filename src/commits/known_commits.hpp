// All that is known of a run's commits at one moment. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "kedge/types.hpp"

namespace kedge::commits {

/// A commit that every rank can recover from the stores.
struct CommitEntry {
  CommitHead commit;
  Level in_stores = Level::local;  ///< local or protected
  Id128 protection_id = {};        ///< id of the parity that counts; none if unknown, or if there is none
  bool persistent = false;         ///< whether it is on the prefix

  /// Returns the highest level that the commit has reached.
  [[nodiscard]] Level level() const noexcept { return persistent ? Level::persistent : in_stores; }
};

/// Whether storage has been surveyed.
enum class SurveyState : std::uint8_t {
  needed,  ///< not surveyed since the start or since a commit was found damaged: nothing may be overwritten
  stale,   ///< the next create has to survey again; until then the entries are right
  done,
};

/// A value: all answers of one copy are of one moment, whatever another thread does to the ledger.
struct KnownCommits {
  std::vector<CommitEntry> entries;           ///< newest first
  std::vector<CommitEntry> flushed_outputs;   ///< the last outputs that left the entries for the prefix; newest first
  std::vector<CommitHead> outputs_of_others;  ///< outputs of other rank counts that are not on the prefix; oldest first
  std::optional<CommitHead> snapshot;         ///< the commit whose containers are not sealed yet; not among the entries
  std::set<Id128> undecided_commits;          ///< commits whose files must stay until the next commit
  Id128 parent_id;                            ///< the commit opened or committed last: parent of the next
  Id128 unverified_commit;  ///< the opened commit, if it may turn out damaged and nothing newer was committed
  Id128 opened_output;
  SurveyState survey_state = SurveyState::needed;
  bool commits_exist = false;        ///< a commit has returned once: a start that finds none must not begin from zero
  bool lost = false;                 ///< no commit could be opened, and none was made since
  std::uint64_t prefix_changes = 0;  ///< number of times that commits were pinned, unpinned or discarded on the prefix

  [[nodiscard]] bool is_surveyed() const noexcept { return survey_state != SurveyState::needed; }
  /// Whether the next create is to survey first. Ranks may learn of it at different times.
  [[nodiscard]] bool must_survey() const noexcept { return survey_state != SurveyState::done; }
  [[nodiscard]] bool has_unverified() const noexcept { return !unverified_commit.is_none(); }
  /// Returns the newest checkpoint; outputs do not count.
  [[nodiscard]] std::optional<CommitEntry> newest_checkpoint() const;
  /// Returns the newest commit of this tag among the entries and the flushed outputs.
  [[nodiscard]] std::optional<CommitEntry> find(std::string_view tag) const;
  /// Returns the entry of this commit; flushed outputs do not count.
  [[nodiscard]] std::optional<CommitEntry> find(const Id128& commit_id) const;
  /// Returns the newest commit of this tag, which may be a snapshot.
  [[nodiscard]] std::optional<CommitHead> find_newest(std::string_view tag) const;
  /// Returns the level of the newest commit of this tag; none if it is not known.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// Whether an entry or a flushed output has this level.
  [[nodiscard]] bool has_reached(const Id128& commit_id, Level level) const;
  /// Returns outputs that are to be on the prefix, and are not yet; oldest first.
  [[nodiscard]] std::vector<CommitHead> outputs_to_flush() const;
  /// Returns outputs that are not on the prefix, oldest first: outputs_to_flush(), and outputs of other numbers of
  /// ranks, which this start cannot flush and which stay in the stores.
  [[nodiscard]] std::vector<CommitHead> unflushed_outputs() const;
  /// Returns for each entry whether it stays if `store_keep` checkpoints are kept (retention.hpp); outputs stay until
  /// they are flushed.
  [[nodiscard]] std::vector<bool> select_kept(std::uint32_t store_keep) const;
  /// Returns the commits that select_kept() keeps, newest first.
  [[nodiscard]] std::vector<Id128> ids_to_keep(std::uint32_t store_keep) const;
};

}  // namespace kedge::commits
