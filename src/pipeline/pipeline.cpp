#include "pipeline/pipeline.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"

namespace kedge::pipeline {
namespace {

constexpr std::uint64_t kOwedOutput = std::uint64_t{1} << 63U;  // beside the stages' bits

std::string no_commit_message(std::string_view tag) {
  return compose(
      "the node-local stores have no commit '{}': a newer one replaced it, or none was made; call wait before the next "
      "create, or raise store.keep",
      tag);
}

Failure no_protection() {
  return {ErrorCode::invalid_argument,
          "this run's redundancy scheme is single, so no commit can be protected; run on two nodes or more, with "
          "redundancy.scheme auto, partner, xor or rs"};
}

std::vector<CommitObserver*> concatenate(std::vector<CommitObserver*> observers, std::vector<CommitObserver*> own) {
  observers.insert(observers.end(), own.begin(), own.end());
  return observers;
}

}  // namespace

Observers::Observers(const comm::Group& group, const commits::Ledger& ledger, const StageList& stages, Scheme scheme,
                     const std::string& run, Completions::IsInProgress is_in_progress,
                     store::StoreRecordFiles* flush_records, std::vector<CommitObserver*> others, Clock& clock,
                     const Log& own_log)
    : flush_record(flush_records, ledger, clock, own_log),
      log(group.is_root(), ledger, stages, scheme, run, own_log),
      completions(ledger, std::move(is_in_progress), own_log),
      all(concatenate(std::move(others), {&completions, &flush_record, &log})) {}

Pipeline::Pipeline(comm::Group group, Stages stages, const PipelineSettings& settings, const PipelineDependencies& uses)
    : group_(std::move(group)),
      ledger_(uses.ledger),
      stages_(std::move(stages.list)),
      outputs_(uses.ledger),
      timer_(uses.clock),
      observers_(
          group_, uses.ledger, stages_, stages.protect.scheme(), settings.run,
          [this](const Id128& commit_id) { return executor_->backlog().may_have_commit(commit_id); },
          uses.flush_records, uses.observers, uses.clock, uses.log),
      runner_(uses.store, uses.ledger, stages_, observers_.all, uses.pause, timer_,
              {settings.store_keep, settings.waits.max_pending}, uses.log),
      snapshots_(group_, uses.ledger, stages_, runner_, observers_.all, uses.pause, timer_, settings.has_snapshots),
      deferred_work_(uses.store, uses.ledger, stages.protect, stages_, runner_, observers_.all, uses.pause, timer_,
                     uses.log),
      executor_(make_executor(group_, settings.executor, uses.store.ranks.ranks_on_node().size(), tasks(), uses.pause,
                              uses.clock, uses.log)),
      waits_(group_, uses.ledger, *executor_, snapshots_, uses.pause, settings.waits),
      deferred_flushes_(group_, uses.ledger, outputs_, stages_, runner_, *executor_, waits_, settings.flush_at_end) {
  if (executor_->is_in_background())
    uses.store.retirement.set_idle_file_count(store::FileKind::container, settings.waits.max_pending);
}

ExecutorTasks Pipeline::tasks() {
  return {[this](Execution& execution, Job& job) { run_job(execution, job); },
          [this](Execution& execution) {
            runner_.begin_work();
            for (const StageWithPolicy& one : stages_.all_stages())
              comm::throw_if(one.stage->clean_up(execution.group()));
          },
          [this](Execution& execution) { return deferred_work_.run_step(execution); }};
}

/// COLLECTIVE, on the execution's group. Only failures that end the engine end a worker.
void Pipeline::run_job(Execution& execution, Job& job) {
  runner_.begin_work();
  if (job.unsealed && !snapshots_.seal_snapshot(execution, job)) return;
  runner_.run_due_stages(execution, job);
  const auto failure = job.progress.stage_failure(Level::persistent);
  if (failure && job.progress.commit.is_output) outputs_.request_flush();
  if (!executor_->is_in_background()) return;
  observers_.all.notify(&CommitObserver::on_finished, job.progress);
  if (failure && failure->code == ErrorCode::busy) throw Error(*failure);
}

/// COLLECTIVE if ranks may know different failures of their workers. Returns the bits of stages to make up for, and
/// kOwedOutput.
std::uint64_t Pipeline::take_failed_stages() {
  if (!executor_->is_in_background()) return stages_.take_failed_stages();
  const bool needs_agreement = stages_.needs_agreement() || outputs_.has_any();
  const std::uint64_t mine =
      stages_.take_failed_stages() | (needs_agreement && outputs_.take_flush_request() ? kOwedOutput : 0);
  return needs_agreement ? group_.bit_or(std::array{mine})[0] : mine;
}

/// COLLECTIVE, as take_failed_stages(). Returns whether an output is unflushed.
bool Pipeline::begin_progress(CommitProgress& progress, const CommitCost& cost, std::optional<Level> level) {
  progress.bytes = cost.bytes;
  progress.blocked_s = cost.blocked_s;
  progress.submitted_s = timer_.now_s();
  const std::uint64_t failed = take_failed_stages();
  stages_.mark_due(progress, level, failed);
  return (failed & kOwedOutput) != 0;
}

CommitProgress Pipeline::submit(const CommitHead& commit, const CommitCost& cost, std::optional<Level> level) {
  if (commit.is_output) outputs_.mark_made();
  else stages_.count_checkpoint();
  snapshots_.forget_tag(commit.tag);
  Job job{stages_.progress_of(commit), {commit, {}}};
  const bool owes_output = begin_progress(job.progress, cost, level);
  InlineExecution execution(group_);
  runner_.prepare_stages(execution, job);
  stages_.restart_due(job.progress);
  const auto since_submitted_s = [&] { return timer_.now_s() - job.progress.submitted_s; };
  if (executor_->is_in_background()) {
    for (const StageProgress& stage : job.progress.stages) job.progress.in_stages_s += stage.prepare_s;
    job.progress.blocked_s += since_submitted_s();
    observers_.all.notify(&CommitObserver::on_committed, job.progress);
    observers_.log.log_submitted(job.progress);
    CommitProgress progress = job.progress;
    executor_->submit(job);
    if (owes_output) deferred_flushes_.submit_next_output();
    waits_.wait_after_submit();
    return progress;
  }
  executor_->submit(job);
  const bool is_flushed = job.progress.has_reached(Level::persistent) && !job.progress.stage_failure(Level::persistent);
  if (is_flushed) deferred_flushes_.flush_outputs();
  job.progress.in_stages_s = since_submitted_s();
  job.progress.blocked_s += since_submitted_s();
  observers_.all.notify(&CommitObserver::on_committed, job.progress);
  observers_.all.notify(&CommitObserver::on_finished, job.progress);
  return job.progress;
}

void Pipeline::submit_unsealed(const CommitHead& commit, const CommitCost& cost,
                               std::unique_ptr<PendingSeal> unsealed) {
  stages_.count_checkpoint();
  Job job{stages_.progress_of(commit), {commit, {}}, std::move(unsealed)};
  if (begin_progress(job.progress, cost, {})) outputs_.request_flush();  // the next commit submits it
  job.files.in_background = true;
  stages_.restart_due(job.progress);
  job.progress.blocked_s += timer_.now_s() - job.progress.submitted_s;
  observers_.all.notify(&CommitObserver::on_snapshot, job.progress);
  snapshots_.begin_snapshot(commit);
  executor_->submit(job);
  waits_.wait_after_submit();
}

/// Jobs that never live for N commits must flush something, too.
void Pipeline::schedule_flush_after(const CommitHead& opened, bool persistent) {
  StagePolicy& policy = *stages_[stages_.index_of(Level::persistent)].policy;
  if (!opened.is_output && persistent) {
    policy.restart_count();
    policy.mark_result(false);
  }
  if (!opened.is_output && !persistent) policy.make_due();
}

void Pipeline::continue_from_other_ranks(const CommitHead& commit, bool persistent, bool reads_others) {
  schedule_flush_after(commit, persistent);
  if (!commit.is_output) stages_[stages_.index_of(Level::protected_)].policy->make_due();
  outputs_.mark_surveyed();
  deferred_work_.plan_of_other_ranks(commit, reads_others);
  executor_->submit_deferred_work({});
  waits_.wait_after_submit();
}

void Pipeline::continue_from(const CommitHead& commit, bool persistent, UnreadWork unread) {
  schedule_flush_after(commit, persistent);
  outputs_.mark_surveyed();
  executor_->submit_deferred_work(deferred_work_.plan_work(InlineExecution(group_), commit, unread));
  waits_.wait_after_submit();
}

void Pipeline::start_without_commit(bool makes_room) {
  outputs_.mark_surveyed();
  if (makes_room) runner_.retire_superseded(InlineExecution(group_));
}

DeferredFlushes::FinishResult Pipeline::finish_job(std::optional<Deadline> deadline) {
  using Finished = DeferredFlushes::FinishResult;
  if (!deferred_flushes_.flush_all(deadline)) return Finished::timed_out;
  observers_.completions.deliver_all();
  return !deadline || deferred_flushes_.is_empty() ? Finished::done : Finished::not_flushed;
}

void Pipeline::on_complete(std::string_view tag, Level level, Completions::Callback callback) {
  std::optional<CommitHead> commit = ledger_.known().find_newest(tag);
  if (const auto lost = snapshots_.find_lost(tag)) {
    commit = lost->commit;
    observers_.completions.record_failure(commit->id, level, lost->failure);
  }
  if (!commit) {
    throw Error(ErrorCode::not_found, ledger_.known().is_surveyed()
                                          ? no_commit_message(tag)
                                          : compose("this start has not surveyed the stores yet, so it knows no commit "
                                                    "'{}'; call open, create or wait first",
                                                    tag));
  }
  // Persistent commits count as protected.
  const bool can_come = stages_.is_scheduled(Level::persistent) || level != Level::protected_ ||
                        stages_.stage_of(Level::protected_).is_possible();
  if (!can_come) observers_.completions.record_failure(commit->id, level, no_protection());
  observers_.completions.add_callback(*commit, level, std::move(callback));
}

void Pipeline::require_level(std::string_view tag, Level level) {
  // The worker may have retired the commit on one rank but not yet on another.
  enum Found : std::uint64_t { reached, lower, nothing };
  snapshots_.throw_if_lost(tag);
  // A snapshot may become an entry meanwhile, and an entry may leave.
  const auto snapshot = ledger_.known().snapshot;
  std::optional<commits::CommitEntry> entry = ledger_.known().find(tag);
  const Level has = snapshot && snapshot->tag == tag ? Level::snapshot : entry ? entry->level() : Level::none;
  const std::uint64_t found = group_.max(has == Level::none ? nothing : has < level ? lower : reached);
  if (found == nothing) {
    snapshots_.throw_if_lost(tag);  // it may have been lost just now
    throw Error(ErrorCode::not_found, no_commit_message(tag));
  }
  if (found == reached) return;
  group_.run_on_all_ranks([&] {
    if (!entry || entry->commit.world_size == group_.world_size()) return;
    throw Error(
        ErrorCode::invalid_argument,
        compose("{} was saved by {} ranks, and this job has {}: only as many ranks can protect or flush it; make "
                "a checkpoint and wait for that, or run kedge drain when the job has ended",
                tag, entry->commit.world_size, group_.world_size()));
  });
  if (level > Level::local && !stages_.stage_of(level).is_possible()) throw Error(no_protection());
  group_.run_on_all_ranks([&] { comm::throw_if(waits_.wait_until_idle().failure); });
  if (executor_->is_in_background()) {  // the worker may have done it meanwhile
    snapshots_.throw_if_lost(tag);
    if (snapshots_.may_exist() && group_.any(!entry || has == Level::snapshot)) {
      entry = ledger_.known().find(tag);
      if (!entry) throw Error(ErrorCode::not_found, no_commit_message(tag));
    }
    if (group_.all(ledger_.known().has_reached(entry->commit.id, level))) return;
  }
  InlineExecution execution(group_);
  auto failure = runner_.run_stage(execution, stages_.index_of(level), entry->commit, Reason::required);
  if (failure && failure->code == ErrorCode::not_found && level == Level::persistent) {
    failure->message += "; open this commit first, so that every rank has its container";
  }
  comm::throw_if(failure);
  if (ledger_.known().must_survey()) return;  // nothing was opened yet: an older one may be
  runner_.retire_superseded(execution);
}

}  // namespace kedge::pipeline
