#include "pipeline/stage_runner.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::pipeline {
namespace {

/// Delay before try number `tries` + 1: 1, 2, 4, ... seconds.
double backoff_s(std::uint64_t tries) {
  constexpr double kLongest_s = 60;
  constexpr std::uint64_t kLongestAfter = 7;
  return tries >= kLongestAfter ? kLongest_s : static_cast<double>(std::uint64_t{1} << (tries - 1));
}

}  // namespace

StageRunner::StageRunner(store::NodeStore& store, commits::Ledger& ledger, StageList& stages,
                         const CommitObservers& observers, BackgroundPause& pause, StageTimer& timer,
                         StoreCapacity capacity, const Log& log)
    : store_(store),
      ledger_(ledger),
      stages_(stages),
      observers_(observers),
      pause_(pause),
      timer_(timer),
      capacity_(capacity),
      log_(log) {}

void StageRunner::prepare_stages(Execution& execution, Job& job) {
  const comm::Group& group = execution.group();
  CommitFiles files{job.progress.commit, {}, {}, job.files.in_background};
  const auto local = attempt([&] {
    files.container = store::Pin(store_.files, store::FileKind::container, group.logical_rank(), {files.commit.id, {}});
  });
  if (!job.progress.has_due_stage()) {
    execution.change_job([&] { job.files = std::move(files); });
    return;
  }
  const auto not_pinned = group.vote(local);
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    StageProgress& progress = job.progress.stages[number];
    if (progress.state != StageState::due) continue;
    const double begin_s = timer_.now_s();
    auto failure = not_pinned;
    if (!failure) failure = stages_[number].stage->prepare(group, files);
    progress.prepare_s = timer_.now_s() - begin_s;
    if (failure) handle_failure(execution, job, number, *failure);
  }
  execution.change_job([&] { job.files = std::move(files); });
}

void StageRunner::run_due_stages(Execution& execution, Job& job) {
  bool is_next_prepared = false;
  const auto prepare_next = [&] {
    if (std::exchange(is_next_prepared, true)) return;
    execution.notify_progress();
    retire_superseded(execution);
    if (job.progress.reason == Reason::committed && job.files.container)
      prepare_next_container(execution, job.files.container->size_bytes());
  };
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (!stages_[number].stage->needs_store_space()) prepare_next();
    if (job.progress.stages[number].state != StageState::due) continue;
    run_with_retries(execution, job, number);
    if (!job.progress.commit.is_output) {
      stages_[number].policy->mark_result(job.progress.stages[number].failure.has_value());
    }
    if (is_next_prepared) retire_superseded(execution);
    if (job.progress.has_due_stage())
      execution.notify_progress();  // otherwise the end of the job wakes the waiting threads
    const auto& failure = job.progress.stages[number].failure;
    if (failure && failure->code == ErrorCode::busy) break;  // a later start of the run has begun
  }
  prepare_next();
}

/// Retries failures that may pass, as long as nobody waits for something else.
void StageRunner::run_with_retries(Execution& execution, Job& job, std::size_t number) {
  StageProgress& progress = job.progress.stages[number];
  const Stage& stage = *stages_[number].stage;
  run_once(execution, job, number);
  while (progress.state == StageState::due && !execution.blocks_application() &&
         progress.tries <= stage.retries_max(*progress.failure)) {
    const double wait_s = backoff_s(progress.tries);
    if (execution.group().is_root()) {
      log_.debug(compose("{} of {} failed, retrying in {:.0f} s: {}", stage.name(), job.progress.commit.tag, wait_s,
                         to_string(*progress.failure)));
    }
    if (!execution.wait_before_retry(std::chrono::duration<double>(wait_s))) break;
    observers_.notify(&CommitObserver::on_stage_retry, job.progress, progress, wait_s);
    run_once(execution, job, number);
  }
  if (progress.state == StageState::due) handle_failure(execution, job, number, *progress.failure);
}

/// A failed stage stays due. Pauses for the application are not counted as cost: nothing pauses the worker when the
/// job's last checkpoint is completed.
void StageRunner::run_once(Execution& execution, Job& job, std::size_t number) {
  StageProgress& progress = job.progress.stages[number];
  Stage& stage = *stages_[number].stage;
  const CommitHead& commit = job.progress.commit;
  const auto sent_bytes =
      static_cast<std::uint64_t>(static_cast<double>(job.progress.bytes.own) * stage.sent_bytes_per_byte());
  const comm::Group group =
      stage.sent_bytes_per_byte() > 0 ? execution.with_timeout_for(sent_bytes) : execution.group();
  const double begin_s = timer_.now_s();
  const BackgroundPause::Seconds paused_before = pause_.paused_time();
  ++progress.tries;
  progress.failure = stage.run(group, job.files);
  // The commit may be flushed by the time a later start of the run is detected.
  const bool is_reached =
      !progress.failure || (progress.failure->code == ErrorCode::busy && stage.level() != Level::none &&
                            ledger_.known().has_reached(commit.id, stage.level()));
  if (!is_reached) return;
  if (job.progress.reason == Reason::committed) progress.after_s = timer_.now_s() - job.progress.submitted_s;
  execution.change_job([&] { progress.state = StageState::reached; });
  observers_.notify(&CommitObserver::on_level_reached, job.progress, progress);
  if (!progress.failure) progress.failure = execution.clean_up(stage);
  if (progress.failure) return observers_.notify(&CommitObserver::on_stage_failed, job.progress, progress);
  const double took_s = timer_.now_s() - begin_s - (pause_.paused_time() - paused_before).count();
  timer_.add_duration(stage.level(), progress.prepare_s + std::max(took_s, 0.0));
}

void StageRunner::handle_failure(Execution& execution, Job& job, std::size_t number, const Failure& failure) {
  StageProgress& progress = job.progress.stages[number];
  execution.change_job([&] { progress.state = StageState::failed; });
  progress.failure = failure;
  progress.tries = std::max<std::uint64_t>(progress.tries, 1);
  observers_.notify(&CommitObserver::on_stage_failed, job.progress, progress);
}

std::optional<Failure> StageRunner::run_stage(Execution& execution, std::size_t number, const CommitHead& commit,
                                              Reason reason) {
  const comm::Group& group = execution.group();
  StageWithPolicy& scheduled = stages_[number];
  std::optional<BackgroundPause::NoPauseGuard> awaited;
  if (execution.blocks_application()) awaited.emplace(pause_);
  Job job{stages_.progress_of(commit), {commit, {}}};
  job.progress.reason = reason;
  auto failure = group.try_on_all_ranks([&] {
    job.files.container = store::Pin(store_.files, store::FileKind::container, group.logical_rank(), {commit.id, {}});
  });
  StageProgress& progress = job.progress.stages[number];
  const double begin_s = timer_.now_s();
  if (!failure) failure = scheduled.stage->prepare(group, job.files);
  if (!failure) {
    job.progress.bytes.own = job.files.container->size_bytes();
    progress.prepare_s = timer_.now_s() - begin_s;
    run_once(execution, job, number);
    failure = progress.failure;
  }
  if (progress.state != StageState::reached) handle_failure(execution, job, number, *failure);
  if (reason == Reason::deferred) observers_.notify(&CommitObserver::on_finished, job.progress);
  // Turns belong to the application's thread. The flush of an older commit does not make up for a newer one's failure.
  if (!failure && !commit.is_output && execution.blocks_application()) {
    scheduled.policy->restart_count();
    const auto newest = ledger_.known().newest_checkpoint();
    if (newest && newest->commit.id == commit.id) scheduled.policy->mark_result(false);
  }
  return failure;
}

/// The first checkpoints of a job find no file to reuse. Preparing the next file at the start and after each of them
/// leaves only the first one waiting for new storage. A lack of space is left for the next create to report. Parity
/// files are not prepared: protection may fail or be off, and the next container may need the space.
void StageRunner::prepare_next_container(const Execution& execution, std::uint64_t size_bytes) {
  if (size_bytes == 0 || !store_.directory.memory_backed()) return;
  // Does not prepare files that are only needed while an older commit waits for a newer one's protection.
  const std::size_t under_way = execution.blocks_application() ? 1 : capacity_.max_pending;
  (void)attempt([&] {
    store_.new_files.preallocate(store::FileKind::container, size_bytes,
                                 {.idle_count = under_way, .total_count = capacity_.store_keep + under_way});
  });
}

void StageRunner::retire_superseded(const Execution& execution) {
  const std::vector<commits::CommitEntry> before = ledger_.known().entries;
  store::retire_superseded(store_.retirement, ledger_, capacity_.store_keep, execution.retire_scope(), log_);
  std::vector<CommitHead> gone;
  for (const commits::CommitEntry& entry : before) {
    if (!ledger_.known().find(entry.commit.id)) gone.push_back(entry.commit);
  }
  observers_.notify(&CommitObserver::on_retired, std::span<const CommitHead>(gone));
}

}  // namespace kedge::pipeline
