// Commits that are submitted before they are sealed: a worker seals them, before anything else.
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

/// If sealing fails, the snapshot is no commit, and its turns are the next one's.
class Snapshots {
 public:
  /// `may_exist`: whether this run makes any. All that is referred to must outlive it.
  Snapshots(comm::Group group, commits::Ledger& ledger, StageList& stages, StageRunner& runner,
            const CommitObservers& observers, Pause& pause, StageTimer& timer, bool may_exist);

  /// Local. Whether a commit of these regions can be sealed in the background as far as its manifest is concerned.
  [[nodiscard]] bool can_prepare(std::span<const format::StoredRegion> regions, const Attributes& attributes);
  /// Whether this run makes any.
  [[nodiscard]] bool may_exist() const noexcept { return may_exist_; }
  /// Local. One is about to be submitted.
  void begin(const CommitHead& commit);
  /// COLLECTIVE, on the execution's group. Seals it, and prepares its stages. Whether it is a commit.
  [[nodiscard]] bool seal(Execution& execution, Job& job);
  /// Whether one is being sealed, or its manifest made; from any thread. A worker may be copying from devices then.
  [[nodiscard]] bool is_sealing() const noexcept { return is_sealing_; }

  /// Local. A commit of this tag was made otherwise.
  void forget(std::string_view tag) { lost_.forget(tag); }
  /// Local. The newest commit of this tag, if it is one that was lost.
  [[nodiscard]] std::optional<LostSnapshots::Lost> find_lost(std::string_view tag) const { return lost_.find(tag); }
  /// COLLECTIVE. Throws why the newest commit of this tag was lost, if it was.
  void throw_if_lost(std::string_view tag);
  /// COLLECTIVE. Why the newest commit is lost: it was a snapshot that could not be sealed, throw_if_lost() has not
  /// said so yet, and nobody ignores it. The same on all ranks.
  [[nodiscard]] std::optional<Failure> not_told() const;
  /// Local. open discards what is newer: finalize need not report a snapshot that is lost.
  void ignore_lost() noexcept { lost_.told_of_all(); }

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
