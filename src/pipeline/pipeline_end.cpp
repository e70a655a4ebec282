// How a pipeline ends: with everything done, or with what is under way given up.
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {

void Pipeline::finish() {
  if (const auto owed = owed_at_end()) flush_newest(*owed);
  completions_.deliver_all();
}

Pipeline::Finished Pipeline::finish_within(Deadline deadline) {
  const auto owed = owed_at_end();
  if (owed && worker_) {
    if (!group_.all(!deadline.passed())) return Finished::in_the_midst;
    hand_over(*owed);
    const Waited waited = wait_until_idle(Rest::given_up, deadline);
    group_.together([&] { comm::throw_if(waited.failure); });
    if (!group_.all(waited.in_time)) return Finished::in_the_midst;
  } else if (owed) {
    flush_newest(*owed);
  }
  completions_.deliver_all();
  return owed_at_end() ? Finished::not_flushed : Finished::in_place;
}

/// The newest commit, if it should be on the prefix and is not.
std::optional<CommitHead> Pipeline::owed_at_end() const {
  const std::optional<commits::Entry> newest = ledger_.newest();
  if (schedule_.flush_every == 0 || !schedule_.flush_at_end || !newest || newest->persistent || ledger_.is_lost()) {
    return std::nullopt;
  }
  return newest->commit;
}

/// COLLECTIVE.
void Pipeline::flush_newest(const CommitHead& commit) {
  const auto failure = run(group_, *flush_, commit, store::Reach::all);
  if (!group_.is_root()) return;
  if (failure) log_.warning(not_flushed(ledger_, commit, *failure, 1));
  else log_.info(compose("{} is persistent", named(commit, schedule_.run)));
}

/// COLLECTIVE. The worker flushes it, as it would have in its turn.
void Pipeline::hand_over(const CommitHead& commit) {
  Job job{{commit, {}}, nullptr, false, true, clock_.seconds()};
  Submitted submitted = take_hold(group_, job);
  if (!submitted.not_persistent) submitted.not_persistent = flush_->prepare(group_, job.files);
  if (submitted.not_persistent) {
    note(job, submitted);
    if (group_.is_root()) warn(commit, submitted);
    return;
  }
  job.bytes.own = job.files.container->size_bytes();
  job.is_last = true;
  worker_->submit(std::move(job));
}

}  // namespace kedge::pipeline
