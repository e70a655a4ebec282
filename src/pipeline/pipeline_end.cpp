// How a pipeline ends: with everything done, or with what is under way given up.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {

void Pipeline::finish() {
  flush_at_end(owed_at_end());
  completions_.deliver_all();
}

Pipeline::Finished Pipeline::finish_within(Deadline deadline) {
  const std::vector<CommitHead> owed = owed_at_end();
  if (!owed.empty() && worker_) {
    if (!group_.all(!deadline.passed())) return Finished::in_the_midst;
    for (const CommitHead& commit : owed) (void)hand_over(commit);
    const Waited waited = wait_until_idle(Rest::given_up, deadline);
    group_.together([&] { comm::throw_if(waited.failure); });
    if (!group_.all(waited.in_time)) return Finished::in_the_midst;
  } else {
    flush_at_end(owed);
  }
  completions_.deliver_all();
  return owed_at_end().empty() ? Finished::in_place : Finished::not_flushed;
}

/// COLLECTIVE. What should be on the prefix and is not: outputs, and the newest checkpoint. That first: there may not
/// be time for all.
std::vector<CommitHead> Pipeline::owed_at_end() const {
  std::vector<CommitHead> owed;
  const std::optional<commits::Entry> newest = ledger_.newest();
  const bool is_flushed_at_end = turns_.flushes() && schedule_.flush_at_end;
  if (is_flushed_at_end && newest && !newest->persistent && !ledger_.is_lost()) owed.push_back(newest->commit);
  std::ranges::copy(owed_outputs(), std::back_inserter(owed));
  return owed;
}

/// COLLECTIVE. Outputs that are on the prefix then leave the stores, and their memory is free.
void Pipeline::flush_at_end(const std::vector<CommitHead>& owed) {
  for (const CommitHead& commit : owed) log_flush(commit, run(group_, *flush_, commit, store::Reach::all));
  if (!owed.empty() && !ledger_.must_survey()) retire(store::Reach::all);
}

void Pipeline::log_flush(const CommitHead& commit, const std::optional<Failure>& failure) {
  if (!group_.is_root()) return;
  if (failure) warn_not_flushed(commit, *failure, 1);
  else log_.info(compose("{} is persistent", named(commit, schedule_.run)));
}

/// COLLECTIVE. The worker flushes it, as it would have in its turn. False if it cannot be flushed.
bool Pipeline::hand_over(const CommitHead& commit) {
  Job job{{commit, {}}, nullptr, false, true, clock_.seconds()};
  Submitted submitted = pin_container(group_, job);
  if (!submitted.not_persistent) submitted.not_persistent = flush_->prepare(group_, job.files);
  if (submitted.not_persistent) {
    note(job, submitted);
    if (group_.is_root()) warn(commit, submitted);
    return false;
  }
  job.bytes.own = job.files.container->size_bytes();
  job.is_last = true;
  worker_->submit(std::move(job));
  return true;
}

}  // namespace kedge::pipeline
