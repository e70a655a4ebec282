// Takes each commit through its stages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "pipeline/background_pause.hpp"
#include "pipeline/commit_log.hpp"
#include "pipeline/completions.hpp"
#include "pipeline/deferred_flushes.hpp"
#include "pipeline/deferred_work.hpp"
#include "pipeline/flush_record.hpp"
#include "pipeline/make_executor.hpp"
#include "pipeline/protect_stage.hpp"
#include "pipeline/snapshots.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"
#include "pipeline/waits.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// Equal on every rank.
struct PipelineSettings {
  std::uint32_t store_keep = 1;  ///< store.keep
  bool flush_at_end = true;      ///< flush the newest commit at the job's end, if any is flushed
  bool has_snapshots = false;    ///< commits may be submitted before they are sealed
  WaitSettings waits;
  ExecutorSettings executor;
  std::string run = {};  ///< the run's name for log lines; may be empty
};

/// The stages of commits, in order. One reaches `protected` and one `persistent`.
struct Stages {
  std::vector<StageWithPolicy> list;
  const ProtectStage& protect;  ///< the one in the list
};

/// Objects that a pipeline works with. They must outlive it.
struct PipelineDependencies {
  store::NodeStore& store;
  commits::Ledger& ledger;
  BackgroundPause& pause;
  Clock& clock;
  const Log& log;
  std::vector<CommitObserver*> observers;            ///< observers of the engine
  store::StoreRecordFiles* flush_records = nullptr;  ///< rank 0's, null elsewhere
};

/// Cost of a commit until it is submitted.
struct CommitCost {
  CommitBytes bytes;
  double blocked_s = 0;
};

/// Observers of commits: the engine's own, and those that make log lines, callbacks and failure records.
struct Observers {
  Observers(const comm::Group& group, const commits::Ledger& ledger, const StageList& stages, Scheme scheme,
            const std::string& run, Completions::IsInProgress is_in_progress, store::StoreRecordFiles* flush_records,
            std::vector<CommitObserver*> others, Clock& clock, const Log& log);

  FlushRecord flush_record;
  CommitLog log;
  Completions completions;
  CommitObservers all;
};

/// Inline, every call returns when its stages have run. In the background, submit() and continue_from() only submit the
/// commit to a worker, and other calls wait for pending work. All calls are COLLECTIVE unless they say local, and throw
/// what ends communication.
class Pipeline {
 public:
  /// COLLECTIVE.
  Pipeline(comm::Group group, Stages stages, const PipelineSettings& settings, const PipelineDependencies& uses);

  /// Submits a sealed commit: runs the stages that are due by schedule, or up to `level` if given. A failed stage is
  /// made up for with a later commit. In the background, the result only shows whether a flush could not be prepared.
  /// Failures are equal on all ranks and do not revoke the commit.
  [[nodiscard]] CommitProgress submit(const CommitHead& commit, const CommitCost& cost,
                                      std::optional<Level> level = {});
  /// Submits a commit that the ledger has as a snapshot, while waits().is_idle() on all ranks. The worker first seals
  /// it. If that fails it is no commit, and the next one gets its turns.
  void submit_unsealed(const CommitHead& commit, const CommitCost& cost, std::unique_ptr<PendingSeal> unsealed);
  /// Submits a commit that was just opened: protects it like a new one, if commits are protected at all. If it is not
  /// persistent, the next commit is flushed. `unread`: see recovery::Opened.
  void continue_from(const CommitHead& commit, bool persistent, UnreadWork unread);
  /// Takes up a commit that was just opened and that another number of ranks saved: its files are left alone, the next
  /// checkpoint is protected, and flushed if the opened one is not persistent. `reads_others`: Unread::others.
  void continue_from_other_ranks(const CommitHead& commit, bool persistent, bool reads_others);
  /// Local. Nothing was opened, and the ledger knows the stores: unflushed outputs are flushed with the next commits.
  /// `makes_room`: the first commit is about to be written.
  void start_without_commit(bool makes_room);
  /// Takes the newest commit of this tag to a level now. Throws the reason if that is impossible: not_found if the
  /// stores lack it, invalid_argument if options rule the level out.
  void require_level(std::string_view tag, Level level);
  /// Local. Calls `callback` with the outcome of the newest commit of this tag. Throws not_found.
  void on_complete(std::string_view tag, Level level, Completions::Callback callback);
  /// Must be the last call of a job. Flushes its newest commit, if any is flushed, until the deadline, if any; inline,
  /// work that has begun is completed. Logs failures.
  [[nodiscard]] DeferredFlushes::FinishResult finish_job(std::optional<Deadline> deadline = {});
  /// Local, after BackgroundPause::end_pauses(). Does not communicate; work may be interrupted.
  [[nodiscard]] StopResult stop(Deadline deadline) { return executor_->stop(deadline); }

  [[nodiscard]] Waits& waits() noexcept { return waits_; }
  [[nodiscard]] const Waits& waits() const noexcept { return waits_; }
  [[nodiscard]] Snapshots& snapshots() noexcept { return snapshots_; }
  [[nodiscard]] Completions& completions() noexcept { return observers_.completions; }
  [[nodiscard]] const StageList& stages() const noexcept { return stages_; }
  /// Returns costs for planning the job's last save. Local.
  [[nodiscard]] StageCosts costs() const { return timer_.costs(executor_->backlog().pending_stages()); }

 private:
  [[nodiscard]] ExecutorTasks tasks();
  void run_job(Execution& execution, Job& job);
  [[nodiscard]] std::uint64_t take_failed_stages();
  void schedule_flush_after(const CommitHead& opened, bool persistent);
  [[nodiscard]] bool begin_progress(CommitProgress& progress, const CommitCost& cost, std::optional<Level> level);

  comm::Group group_;
  commits::Ledger& ledger_;
  StageList stages_;
  UnflushedOutputs outputs_;
  StageTimer timer_;
  Observers observers_;
  StageRunner runner_;
  Snapshots snapshots_;
  DeferredWork deferred_work_;
  std::unique_ptr<Executor> executor_;  ///< after the members that its work uses
  Waits waits_;
  DeferredFlushes deferred_flushes_;
};

}  // namespace kedge::pipeline
