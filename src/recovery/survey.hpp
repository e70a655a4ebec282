// Surveys this run's commits in all storage. Candidates are made only here.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "commits/run_identity.hpp"
#include "kedge/selection.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/prefix_storage.hpp"
#include "recovery/agreement.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

/// Result of a survey; immutable, and equal on all ranks except for `homes`.
struct Survey {
  std::uint32_t processes = 0;        ///< of the surveying group
  std::vector<Candidate> candidates;  ///< newest first
  /// Damage of files whose commit cannot be read, as reported by the lowest rank; may be empty.
  std::string unreadable;
  Homes homes = {};         ///< of this process
  bool is_drained = false;  ///< Storage::is_drained
};

/// The storage in which a run's commits may be.
struct Storage {
  commits::RunIdentity run;
  store::NodeStore& store;
  persist::PrefixReader& prefix_storage;
  commits::Ledger& ledger;                          ///< what is known of its commits
  Trust trust = Trust::self;                        ///< persistent.trust
  const persist::PrefixMarkers* markers = nullptr;  ///< rank 0's, null elsewhere
  OtherRanks other_ranks = OtherRanks::accept;      ///< open.other_ranks
  int domain = 0;                                   ///< the lowest process in this one's failure domain
  bool is_drained = false;  ///< this start, or another by the same caller, flushes all that is there
};

/// Surveys stores and prefix. Call look(), then survey(), and survey() again whenever verify() finds a difference.
class StorageSurvey {
 public:
  /// All that is referred to must outlive it.
  StorageSurvey(comm::Group group, Storage storage, Log log)
      : group_(std::move(group)), storage_(std::move(storage)), log_(std::move(log)) {}

  /// COLLECTIVE. Reads the headers of all files in the stores again.
  void look();

  /// COLLECTIVE. Surveys the stores, as found by look(), and the prefix. Discarded and excluded commits are not
  /// recoverable. Updates the ledger. Of commits that are only on the prefix, includes those that match `selection`. A
  /// null `selection` means that nothing will be opened: a prefix that cannot be read is then only logged; otherwise it
  /// throws Error{io}.
  [[nodiscard]] Survey survey(const Selection* selection);

  /// Local. Reads all of this process's files of a commit, except skipped ones. False if a file differs from earlier
  /// findings; the next survey uses the new ones. Completely verified commits are not read again before the next
  /// look(). Throws io.
  [[nodiscard]] bool verify(const Id128& commit_id, const store::SkippedFiles& skipped_files);

  /// Local. The commit's protections of which look() found files here, each once.
  [[nodiscard]] std::vector<store::FileKey> protections(const Id128& commit_id) const;

 private:
  void reject_contradicted();
  void warn_of_stranded(const Survey& survey, const std::vector<CommitHead>& owed_before);

  comm::Group group_;
  Storage storage_;
  Log log_;
  std::vector<store::ScannedFile> files_;
  std::set<Id128> verified_;      ///< commits verified completely since look()
  std::set<std::string> warned_;  ///< logged warnings: most repeated surveys find the same
};

}  // namespace kedge::recovery
