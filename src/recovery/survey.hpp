// Survey of this run's commits in all storage: the one place where candidates come about.
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

/// Result of a survey, as all ranks know it; never changed after it was made.
struct Survey {
  std::uint32_t processes = 0;        ///< of the group that made it
  std::vector<Candidate> candidates;  ///< newest first
  /// Damage in files so broken that no commit could be read from them: the lowest rank's, or empty.
  std::string unreadable;
  Homes homes = {};  ///< this process's
};

/// Where commits of a run may be.
struct Storage {
  commits::RunIdentity run;
  store::NodeStore& store;
  persist::PrefixStorage& prefix_storage;
  commits::Ledger& ledger;                 ///< what is known of its commits
  Trust trust = Trust::self;               ///< persistent.trust
  const persist::PrefixMarkers* markers = nullptr;  ///< rank 0's, null elsewhere
  bool is_drained = false;                 ///< this start, or another by the same caller, flushes all that is there
};

/// Looks at the stores and the prefix. Usage: look, survey, and survey once more each time verify finds a difference.
class StorageSurvey {
 public:
  /// All that is referred to must outlive it.
  StorageSurvey(comm::Group group, Storage storage, Log log)
      : group_(std::move(group)), storage_(std::move(storage)), log_(std::move(log)) {}

  /// COLLECTIVE. Reads the headers of all files in the stores anew.
  void look();

  /// COLLECTIVE. Surveys the stores, as look() found them, and the prefix; discarded or excluded commits are not
  /// recoverable. The ledger gets the result. `selection` is what is to be opened: of commits on the prefix alone, the
  /// survey has only those that it can come to. Null: nothing is to be opened, and a prefix that cannot be read is only
  /// logged; otherwise that throws Error{io}.
  [[nodiscard]] Survey survey(const Selection* selection);

  /// Local. Reads whole what of a commit this process holds, but for what is left out. False if any of it differs from
  /// what was found before; the next survey goes by what was found now. A commit of which nothing was left out is not
  /// read again before the next look. Throws io.
  [[nodiscard]] bool verify(const Id128& commit_id, const store::SkippedFiles& skipped_files);

  /// Local. The protections of a commit of which the look found files here, each once.
  [[nodiscard]] std::vector<store::FileKey> protections(const Id128& commit_id) const;

 private:
  void reject_contradicted();
  void warn_of_stranded(const Survey& survey, const std::vector<CommitHead>& owed_before);

  comm::Group group_;
  Storage storage_;
  Log log_;
  std::vector<store::ScannedFile> files_;
  std::set<Id128> verified_;      ///< commits of which all was read since the look
  std::set<std::string> warned_;  ///< what was logged: surveys follow each other, and most find the same
};

}  // namespace kedge::recovery
