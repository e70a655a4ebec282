// Takes each commit through its stages: which of them is due, and who waits for it.
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
#include "pipeline/after_open.hpp"
#include "pipeline/commit_log.hpp"
#include "pipeline/completions.hpp"
#include "pipeline/flush_record.hpp"
#include "pipeline/make_executor.hpp"
#include "pipeline/owed_flushes.hpp"
#include "pipeline/owed_outputs.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/protect_stage.hpp"
#include "pipeline/snapshots.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/stage_list.hpp"
#include "pipeline/stage_runner.hpp"
#include "pipeline/waits.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// The same on every rank.
struct PipelineSettings {
  std::uint32_t keep = 1;      ///< commits that the stores keep
  bool flush_at_end = true;    ///< the newest, when the job ends, if any is flushed by itself
  bool has_snapshots = false;  ///< commits may be submitted before they are sealed
  WaitSettings waits;
  ExecutorSettings executor;
  std::string run = {};  ///< whose name the log gives beside commits; empty: of none
};

/// What commits go through, in this order. One of them reaches `protected`, and one `persistent`.
struct Stages {
  std::vector<StageWithTurns> list;
  const ProtectStage& protect;  ///< the one of the list that does
};

/// What a commit has cost until it is submitted.
struct CommitCost {
  CommitBytes bytes;
  double blocked_s = 0;
};

/// What a pipeline tells of commits: to the engine's own observers, the log, callbacks and the record of failed
/// flushes.
struct Observers {
  Observers(const comm::Group& group, const commits::Ledger& ledger, const StageList& stages, Scheme scheme,
            const std::string& run, Completions::IsUnderWay is_under_way, store::StoreRecords* flush_records,
            std::vector<CommitObserver*> others, Clock& clock, const Log& log);

  FlushRecord flush_record;
  CommitLog log;
  Completions completions;
  CommitObservers all;
};

/// Inline, every call returns when its stages have run. In the background, submit() and continue_from() only hand the
/// commit to a worker, and other calls wait for what is under way. All calls are COLLECTIVE, unless they say that they
/// are local, and throw what ends communication.
class Pipeline {
 public:
  /// COLLECTIVE. All that is referred to must outlive it. `flush_records`: rank 0's, null elsewhere.
  Pipeline(comm::Group group, store::NodeStore& store, commits::Ledger& ledger, Stages stages,
           const PipelineSettings& settings, Pause& pause, Clock& clock, const Log& log,
           std::vector<CommitObserver*> observers, store::StoreRecords* flush_records);

  /// A commit that was just sealed: takes it as far as its turn says, or to `level` if that is given. What failed is
  /// tried again with a later one. In the background nothing has become of it when this returns, except that a flush
  /// could not be prepared. Each failure is the same on every rank; the commit stands without.
  [[nodiscard]] CommitProgress submit(const CommitHead& commit, const CommitCost& cost,
                                      std::optional<Level> level = {});
  /// A commit that the ledger knows as a snapshot, while waits().is_idle() on all ranks: the worker seals it first,
  /// then as submit(). If that fails, it is no commit, and its turns are the next one's.
  void submit_unsealed(const CommitHead& commit, const CommitCost& cost, std::unique_ptr<PendingSeal> unsealed);
  /// A commit that was just opened: makes it as well protected as a fresh one, if commits are protected at all. If it
  /// is not persistent, the next commit is due for the prefix. `unread`: see recovery::Opened.
  void continue_from(const CommitHead& commit, bool persistent, Unread unread);
  /// Local. Nothing was opened, and the ledger knows what the stores hold: what is owed is flushed with the next
  /// commits. `makes_room`: for the first commit, which is about to be written.
  void opened_nothing(bool makes_room);
  /// Takes the newest commit of this tag to a level now. Throws why it cannot be reached: not_found if the stores have
  /// none, invalid_argument if the options rule the level out.
  void require(std::string_view tag, Level level);
  /// Local. `callback` hears what becomes of the newest commit of this tag. Throws not_found.
  void on_complete(std::string_view tag, Level level, Completions::Callback callback);
  /// The job ends: its newest commit goes to the prefix, if any does; within this time, if it is given: inline, what is
  /// begun is completed. A failure is logged. The last call.
  [[nodiscard]] OwedFlushes::Finished finish(std::optional<Deadline> deadline = {});
  /// Local, after Pause::end(). Without communicating, and perhaps in the middle of something.
  [[nodiscard]] Stopped stop(Deadline deadline) { return executor_->stop(deadline); }

  [[nodiscard]] Waits& waits() noexcept { return waits_; }
  [[nodiscard]] const Waits& waits() const noexcept { return waits_; }
  [[nodiscard]] Snapshots& snapshots() noexcept { return snapshots_; }
  [[nodiscard]] Completions& completions() noexcept { return observers_.completions; }
  [[nodiscard]] const StageList& stages() const noexcept { return stages_; }
  /// Local. What the last save of a job is planned with.
  [[nodiscard]] StageCosts costs() const { return timer_.costs(executor_->backlog().ahead()); }

 private:
  [[nodiscard]] Duties duties();
  void work(Execution& execution, Job& job);
  [[nodiscard]] std::uint64_t take_failed();
  [[nodiscard]] bool begin(CommitProgress& progress, const CommitCost& cost, std::optional<Level> level);

  comm::Group group_;
  commits::Ledger& ledger_;
  StageList stages_;
  OwedOutputs outputs_;
  StageTimer timer_;
  Observers observers_;
  StageRunner runner_;
  Snapshots snapshots_;
  AfterOpen after_open_;
  std::unique_ptr<Executor> executor_;  ///< its work uses what is before it, and nothing that follows
  Waits waits_;
  OwedFlushes owed_;
};

}  // namespace kedge::pipeline
