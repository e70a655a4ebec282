// Commits that are submitted before they are sealed; a worker seals them first.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/job.hpp"
#include "pipeline/lost_snapshots.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"

namespace kedge::pipeline {

/// If sealing fails, the snapshot is no commit, and the next commit gets its turns.
class Snapshots {
 public:
  /// `may_exist`: whether this run makes snapshots. The referenced objects must outlive it.
  Snapshots(comm::Group group, commits::Ledger& ledger, StageList& stages, StageRunner& runner,
            const CommitObservers& observers, Pause& pause, StageTimer& timer, bool may_exist);

  /// Local. Whether a manifest for these regions can be made in the background.
  [[nodiscard]] bool can_prepare(std::span<const format::StoredRegion> regions, const Attributes& attributes);
  /// Whether this run makes snapshots.
  [[nodiscard]] bool may_exist() const noexcept { return may_exist_; }
  /// Local. A snapshot is about to be submitted.
  void begin(const CommitHead& commit);
  /// COLLECTIVE, on the execution's group. Seals it and prepares its stages; returns whether it is a commit.
  [[nodiscard]] bool seal(Execution& execution, Job& job);
  /// Thread-safe. Whether a snapshot is being sealed or prepared; a worker may then copy from devices.
  [[nodiscard]] bool is_sealing() const noexcept { return is_sealing_; }

  /// Local. A newer commit of this tag was made.
  void forget(std::string_view tag) { lost_.forget(tag); }
  /// Local. The loss, if the newest commit of this tag is lost.
  [[nodiscard]] std::optional<LostSnapshots::Lost> find_lost(std::string_view tag) const { return lost_.find(tag); }
  /// COLLECTIVE. Throws the reason if the newest commit of this tag is lost.
  void throw_if_lost(std::string_view tag);
  /// COLLECTIVE. Why the newest commit is lost: it was a snapshot that could not be sealed, throw_if_lost() has not
  /// reported it, and it is not ignored. Equal on all ranks.
  [[nodiscard]] std::optional<Failure> unreported() const;
  /// Local. open discards newer commits, so finalize need not report a lost one.
  void ignore_lost() noexcept { lost_.mark_all_reported(); }

 private:
  void not_sealed(Execution& execution, const Job& job, const Failure& failure);

  comm::Group group_;
  commits::Ledger& ledger_;
  StageList& stages_;
  StageRunner& runner_;
  const CommitObservers& observers_;
  Pause& pause_;
  StageTimer& timer_;
  bool may_exist_;
  LostSnapshots lost_;
  std::atomic<bool> is_sealing_ = false;
};

}  // namespace kedge::pipeline
