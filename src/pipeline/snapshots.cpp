#include "pipeline/snapshots.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace kedge::pipeline {

Snapshots::Snapshots(comm::Group group, commits::Ledger& ledger, StageList& stages, StageRunner& runner,
                     const CommitObservers& observers, Pause& pause, StageTimer& timer, bool may_exist)
    : group_(std::move(group)),
      ledger_(ledger),
      stages_(stages),
      runner_(runner),
      observers_(observers),
      pause_(pause),
      timer_(timer),
      may_exist_(may_exist),
      lost_(ledger) {}

bool Snapshots::can_prepare(std::span<const format::StoredRegion> regions, const Attributes& attributes) {
  return std::ranges::none_of(stages_.all(), [&](const StageWithPolicy& one) {
    return one.policy->may_be_due_next() && one.stage->needs_application(group_, regions, attributes);
  });
}

void Snapshots::begin(const CommitHead& commit) {
  lost_.begin(commit.tag);
  is_sealing_ = true;
}

bool Snapshots::seal(Execution& execution, Job& job) {
  const struct Ends {  // also if other ranks are gone
    std::atomic<bool>& is_sealing;
    ~Ends() { is_sealing = false; }
  } ends{is_sealing_};
  const double begin_s = timer_.now_s();
  const Pause::Seconds paused_before = pause_.paused_time();
  const auto failure = job.unsealed->seal(execution.with_timeout_for(stages_.sent_bytes(job.progress.bytes.own)));
  std::unique_ptr<PendingSeal> done;  // destroying it may take long, so it must not block readers of the job
  execution.change([&] { done = std::move(job.unsealed); });
  done.reset();
  if (failure) {
    not_sealed(execution, job, *failure);
    return false;
  }
  const double took_s = timer_.now_s() - begin_s - (pause_.paused_time() - paused_before).count();
  timer_.add(Level::local, job.progress.blocked_s + std::max(took_s, 0.0));
  observers_.notify(&CommitObserver::on_committed, job.progress);
  lost_.forget(job.progress.commit.tag);
  execution.made_progress();
  runner_.prepare(execution, job);
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (job.progress.stages[number].state == StageState::failed) stages_[number].policy->mark_result(true);
  }
  is_sealing_ = false;
  execution.made_progress();
  return true;
}

/// COLLECTIVE, on the execution's group. The snapshot never was a commit; the previous one stays the newest.
void Snapshots::not_sealed(Execution& execution, const Job& job, const Failure& failure) {
  const CommitHead& commit = job.progress.commit;
  lost_.add(commit, failure);
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (job.progress.stages[number].state == StageState::due) stages_[number].policy->mark_lost();
  }
  ledger_.drop_snapshot();
  observers_.notify(&CommitObserver::on_snapshot_lost, job.progress, failure);
  is_sealing_ = false;
  execution.made_progress();
  if (failure.code == ErrorCode::device_failed) throw Error(failure);
}

void Snapshots::throw_if_lost(std::string_view tag) {
  if (!may_exist_) return;
  const auto lost = lost_.find(tag);
  const auto failure = group_.vote(lost ? std::optional(lost->failure) : std::nullopt);
  if (failure) lost_.mark_reported(tag);
  comm::throw_if(failure);
}

std::optional<Failure> Snapshots::unreported() const {
  if (!may_exist_) return std::nullopt;
  return group_.vote(lost_.unreported());
}

}  // namespace kedge::pipeline
