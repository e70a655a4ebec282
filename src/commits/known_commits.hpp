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
struct Entry {
  CommitHead commit;
  Level in_stores = Level::local;  ///< local or protected
  Id128 protection_id = {};        ///< of the parity that counts; none: unknown, or there is none
  bool persistent = false;         ///< the prefix has it

  /// The highest level that it has reached.
  [[nodiscard]] Level level() const noexcept { return persistent ? Level::persistent : in_stores; }
};

/// How far storage has been surveyed.
enum class SurveyState : std::uint8_t {
  needed,  ///< not yet, or not since a commit turned out damaged: nothing may be overwritten
  stale,   ///< the next create has to survey again; until then the entries are right
  done,
};

/// A value: questions to one copy get answers of one moment, whatever another thread does to the ledger.
struct KnownCommits {
  std::vector<Entry> entries;                 ///< newest first
  std::vector<Entry> flushed_outputs;         ///< the last that left the entries for the prefix; newest first
  std::vector<CommitHead> outputs_of_others;  ///< of other rank counts and not on the prefix; the oldest first
  std::optional<CommitHead> snapshot;         ///< the commit whose containers are not sealed yet; not among the entries
  std::set<Id128> undecided;                  ///< their files must stay until the next commit
  Id128 parent_id;                            ///< the commit opened or committed last: parent of the next
  Id128 unverified;  ///< opened, and may turn out damaged as long as nothing newer was committed
  Id128 opened_output;
  SurveyState survey = SurveyState::needed;
  bool commits_exist = false;        ///< one has returned once: a start that finds none must not begin from zero
  bool lost = false;                 ///< no commit could be opened, and none was made since
  std::uint64_t prefix_changes = 0;  ///< commits there were pinned, unpinned or discarded: cached lists are outdated

  [[nodiscard]] bool is_surveyed() const noexcept { return survey != SurveyState::needed; }
  /// Whether the next create is to survey first. Ranks may learn of it one after the other.
  [[nodiscard]] bool must_survey() const noexcept { return survey != SurveyState::done; }
  [[nodiscard]] bool has_unverified() const noexcept { return !unverified.is_none(); }
  /// The newest checkpoint, whatever outputs there are.
  [[nodiscard]] std::optional<Entry> newest() const;
  /// The newest commit of this tag: among the entries and the flushed outputs.
  [[nodiscard]] std::optional<Entry> find(std::string_view tag) const;
  /// Among the entries alone.
  [[nodiscard]] std::optional<Entry> find(const Id128& commit_id) const;
  /// The newest commit of this tag; may be a snapshot.
  [[nodiscard]] std::optional<CommitHead> newest_of(std::string_view tag) const;
  /// Level of the newest commit of this tag; none if it is not known.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// Whether a commit has this level: one of the entries, or of the flushed outputs.
  [[nodiscard]] bool has_reached(const Id128& commit_id, Level level) const;
  /// Outputs that are to be on the prefix, and are not yet; the oldest first.
  [[nodiscard]] std::vector<CommitHead> outputs_to_flush() const;
  /// Outputs that are not on the prefix: outputs_to_flush(), and outputs of other numbers of ranks, which this start
  /// cannot flush and which stay in the stores. The oldest first.
  [[nodiscard]] std::vector<CommitHead> unflushed_outputs() const;
  /// Which of the entries stay when `keep` checkpoints are kept (retention.hpp), and every output until it is flushed.
  [[nodiscard]] std::vector<bool> select_kept(std::uint32_t keep) const;
  /// The commits for which select_kept() says yes, newest first.
  [[nodiscard]] std::vector<Id128> ids_to_keep(std::uint32_t keep) const;
};

}  // namespace kedge::commits
