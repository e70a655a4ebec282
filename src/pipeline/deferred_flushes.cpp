#include "pipeline/deferred_flushes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "commits/commit_record.hpp"

namespace kedge::pipeline {

DeferredFlushes::DeferredFlushes(comm::Group group, commits::Ledger& ledger, UnflushedOutputs& outputs,
                                 StageList& stages, StageRunner& runner, Executor& executor, Waits& waits, bool at_end)
    : group_(std::move(group)),
      ledger_(ledger),
      outputs_(outputs),
      stages_(stages),
      runner_(runner),
      executor_(executor),
      waits_(waits),
      flushes_at_end_(at_end),
      flush_stage_(stages.index_of(Level::persistent)) {}

/// Unflushed outputs that the worker does not have.
std::vector<CommitHead> DeferredFlushes::unflushed_outputs() const {
  return outputs_.list_unflushed(
      group_, [&](const Id128& commit_id) { return executor_.backlog().may_have_commit(commit_id); });
}

void DeferredFlushes::flush_outputs() {
  if (!group_.any(!ledger_.known().outputs_to_flush().empty())) return;
  InlineExecution execution(group_);
  for (const CommitHead& output : unflushed_outputs()) {
    const auto failure = runner_.run_stage(execution, flush_stage_, output, Reason::deferred);
    if (!failure) continue;
    if (failure->code != ErrorCode::not_found) return;
    outputs_.mark_unflushable(output.id);
  }
}

void DeferredFlushes::submit_next_output() {
  const std::vector<CommitHead> owed = unflushed_outputs();
  if (owed.empty()) return;
  const auto failure = submit_flush(owed.front());
  const bool is_out_of_reach = failure && failure->code == ErrorCode::not_found;
  if (is_out_of_reach) outputs_.mark_unflushable(owed.front().id);
  if (owed.size() > 1 || (failure && !is_out_of_reach)) outputs_.request_flush();
}

/// The worker flushes it, as it would have in its turn. Why the flush could not be prepared.
std::optional<Failure> DeferredFlushes::submit_flush(const CommitHead& commit) {
  Job job{stages_.progress_of(commit), {commit, {}}};
  job.progress.reason = Reason::deferred;
  StageProgress& flush = job.progress.stages[flush_stage_];
  flush.state = StageState::due;
  InlineExecution execution(group_);
  runner_.prepare_stages(execution, job);
  if (flush.failure) return flush.failure;
  job.progress.bytes.own = job.files.container->size_bytes();
  executor_.submit(job);
  return std::nullopt;
}

bool DeferredFlushes::flush_all(std::optional<Deadline> deadline) {
  const std::vector<CommitHead> owed_now = unflushed_commits();
  if (owed_now.empty() || !deadline || !executor_.is_in_background()) {
    flush_commits(owed_now);
    return true;
  }
  if (!group_.all(!deadline->passed())) return false;
  for (const CommitHead& commit : owed_now) (void)submit_flush(commit);
  const WaitResult waited = waits_.wait_until_idle(DeferredWorkPolicy::drop, *deadline);
  group_.run_on_all_ranks([&] { comm::throw_if(waited.failure); });
  return group_.all(waited.is_in_time);
}

/// Commits that should be on the prefix and are not: first the newest checkpoint, since time may be short, then
/// outputs.
std::vector<CommitHead> DeferredFlushes::unflushed_commits() const {
  std::vector<CommitHead> owed;
  const std::optional<commits::CommitEntry> newest = ledger_.known().newest_checkpoint();
  const bool is_flushed_at_end = flushes_at_end_ && stages_.is_scheduled(Level::persistent);
  const bool can_be_flushed = newest && newest->commit.world_size == group_.world_size();
  if (is_flushed_at_end && can_be_flushed && !newest->persistent && !ledger_.known().lost) {
    owed.push_back(newest->commit);
  }
  std::ranges::copy(unflushed_outputs(), std::back_inserter(owed));
  return owed;
}

/// Flushes; outputs then leave the stores, which frees their memory.
void DeferredFlushes::flush_commits(const std::vector<CommitHead>& owed) {
  InlineExecution execution(group_);
  for (const CommitHead& commit : owed) (void)runner_.run_stage(execution, flush_stage_, commit, Reason::deferred);
  if (!owed.empty() && !ledger_.known().must_survey()) runner_.retire_superseded(execution);
}

void UnflushedOutputs::mark_surveyed() {
  unflushable_.clear();
  has_any_ = !ledger_.known().outputs_to_flush().empty();
  is_flush_requested_ = has_any_;
}

std::vector<CommitHead> UnflushedOutputs::list_unflushed(
    const comm::Group& group, const std::function<bool(const Id128& commit_id)>& is_in_hand) const {
  std::vector<commits::CommitRecord> records;
  if (group.is_root()) {
    for (const CommitHead& output : ledger_.known().outputs_to_flush()) {
      if (!is_in_hand(output.id) && !unflushable_.contains(output.id)) records.push_back(commits::to_record(output));
    }
  }
  group.broadcast(records);
  std::vector<CommitHead> outputs;
  std::ranges::transform(records, std::back_inserter(outputs), commits::to_head);
  return outputs;
}

}  // namespace kedge::pipeline
