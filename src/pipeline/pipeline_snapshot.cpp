// Commits that are submitted as snapshots: the worker seals them before anything else.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {
bool Pipeline::can_prepare_in_background(std::span<const format::PlacedRegion> regions,
                                         const Attributes& attributes) const {
  return !turns_.may_flush_next() || !flush_->needs_application(group_, regions, attributes);
}

void Pipeline::submit_unsealed(const CommitHead& commit, const CommitCost& cost,
                               std::unique_ptr<PendingSeal> unsealed) {
  turns_.count();
  Job job{{commit, {}}, std::move(unsealed), false, false, clock_.seconds(), cost.bytes, cost.blocked_s};
  job.files.in_background = true;
  const ToMakeUpFor failed = take_failed();
  decide(job, {}, failed.flush);
  if (failed.output) outputs_.note();  // the next one brings it on its way
  if (job.flush) turns_.flushed();
  job.blocked_s += clock_.seconds() - job.submitted_s;
  within_submit_s_ = 0;
  metrics_.took_snapshot(commit, job.bytes, job.blocked_s);
  if (group_.is_root()) log_.debug(compose("{} is a snapshot; the rest goes on in the background", commit.tag));
  lost_snapshots_.begin(commit.tag);
  is_sealing_ = true;
  worker_->submit(std::move(job));
  if (schedule_.waits) (void)wait_until_idle();
}

std::optional<Failure> Pipeline::wait_until_sealed() {
  if (!is_sealing_) return failure();
  const Pause::Awaited awaited(pause_);
  return worker_->wait_until([this] { return !is_sealing_; }).failure;
}

/// COLLECTIVE, on `channel`, in the worker's thread. Whether it is a commit.
bool Pipeline::seal(const comm::Group& channel, Job& job) {
  const struct Ends {  // also where the other ranks are gone
    std::atomic<bool>& is_sealing;
    ~Ends() { is_sealing = false; }
  } ends{is_sealing_};
  const double begin_s = clock_.seconds();
  const Pause::Seconds stood_before = pause_.stood();
  const auto failure = job.unsealed->seal(patient(channel, job.bytes.own));
  std::unique_ptr<PendingSeal> done;  // it may take long to end, so not while others look at the job
  worker_->change([&] { done = std::move(job.unsealed); });
  done.reset();
  if (failure) {
    not_sealed(channel, job, *failure);
    return false;
  }
  const double took_s = clock_.seconds() - begin_s - (pause_.stood() - stood_before).count();
  timer_.add(Level::local, job.blocked_s + std::max(took_s, 0.0));
  metrics_.committed(job.files.commit, job.bytes, job.blocked_s);
  lost_snapshots_.forget(job.files.commit.tag);
  worker_->made_progress();
  prepare_in_background(channel, job);
  is_sealing_ = false;
  worker_->made_progress();
  return true;
}

/// COLLECTIVE, on `channel`. What submit() does in the application's thread.
void Pipeline::prepare_in_background(const comm::Group& channel, Job& job) {
  Job held{{job.files.commit, {}}, nullptr, job.protect, job.flush, job.submitted_s, job.bytes};
  held.files.in_background = true;
  Submitted submitted = pin_container(channel, held);
  if (held.flush && !submitted.not_persistent) {
    const double begin_s = clock_.seconds();
    submitted.not_persistent = flush_->prepare(channel, held.files);
    held.prepare_s = clock_.seconds() - begin_s;
  }
  if (submitted.not_persistent) {
    held.flush = false;
    turns_.note_flush(true);
  }
  worker_->change([&] {
    job.files = std::move(held.files);
    job.protect = held.protect;
    job.flush = held.flush;
    job.prepare_s = held.prepare_s;
  });
  note(job, submitted);
  if (channel.is_root()) warn(job.files.commit, submitted);
}

/// COLLECTIVE, on `channel`. It was never a commit; the one before it still is the newest.
void Pipeline::not_sealed(const comm::Group& channel, const Job& job, const Failure& failure) {
  const CommitHead& commit = job.files.commit;
  lost_snapshots_.add(commit, failure);
  for (const Level level : {Level::snapshot, Level::local, Level::protected_, Level::persistent}) {
    completions_.failed(commit.id, level, failure);
  }
  if (job.protect) turns_.note_protect_lost();
  if (job.flush) turns_.note_flush(true);
  ledger_.drop_snapshot();
  metrics_.checkpoint_failed(commit.tag, failure);
  if (channel.is_root()) {
    log_.warning(lost_snapshots_.warning(commit, failure));
  }
  is_sealing_ = false;
  worker_->made_progress();
  if (failure.code == ErrorCode::device_failed) throw Error(failure);
}

/// COLLECTIVE.
void Pipeline::throw_if_not_sealed(std::string_view tag) {
  if (!schedule_.snapshots) return;
  const auto lost = lost_snapshots_.find(tag);
  const auto failure = group_.vote(lost ? std::optional(lost->failure) : std::nullopt);
  if (failure) lost_snapshots_.told(tag);
  comm::throw_if(failure);
}

std::optional<Failure> Pipeline::lost_snapshot() const {
  if (!schedule_.snapshots) return std::nullopt;
  return group_.vote(lost_snapshots_.not_told());
}

}  // namespace kedge::pipeline
