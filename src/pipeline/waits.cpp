#include "pipeline/waits.hpp"

#include <utility>

#include "base/text.hpp"

namespace kedge::pipeline {

Waits::Waits(comm::Group group, const commits::Ledger& ledger, Executor& executor, const Snapshots& snapshots,
             BackgroundPause& pause, WaitSettings settings)
    : group_(std::move(group)),
      ledger_(ledger),
      executor_(executor),
      snapshots_(snapshots),
      pause_(pause),
      settings_(settings) {}

std::size_t Waits::pending_count() const {
  const Backlog backlog = executor_.backlog();
  return backlog.is_stopping ? 0 : backlog.jobs.size();
}

std::optional<Failure> Waits::wait_for_space() {
  if (!is_in_background() || pending_count() < settings_.max_pending) return failure();
  if (settings_.when_full == WhenFull::block) {
    const BackgroundPause::NoPauseGuard awaited(pause_);
    const auto is_below = [&](const Backlog& backlog) { return backlog.jobs.size() < settings_.max_pending; };
    return executor_.wait_until(is_below, Deadline::never(), true).failure;
  }
  return Failure{ErrorCode::no_space,
                 compose("as many commits as pipeline.max_pending permits ({}) are pending; make checkpoints less "
                         "often, or set pipeline.when_full to block",
                         pending_count())};
}

std::optional<Failure> Waits::wait_until_sealed() {
  if (!snapshots_.is_sealing()) return failure();
  const BackgroundPause::NoPauseGuard awaited(pause_);
  const auto is_sealed = [this](const Backlog& backlog) { return backlog.is_stopping || !snapshots_.is_sealing(); };
  return executor_.wait_until(is_sealed, Deadline::never(), false).failure;
}

WaitResult Waits::wait_until_idle(DeferredWorkPolicy rest, Deadline deadline) {
  const BackgroundPause::NoPauseGuard awaited(pause_);
  if (rest == DeferredWorkPolicy::drop) executor_.drop_deferred_work();
  const auto is_idle = [&](const Backlog& backlog) {
    return backlog.jobs.empty() && !backlog.is_cleaning_up &&
           (!backlog.has_deferred_work || rest == DeferredWorkPolicy::ignore);
  };
  return executor_.wait_until(is_idle, deadline, true);
}

WaitResult Waits::wait_for(std::string_view tag, Level level, Deadline deadline) {
  const auto commit = is_in_background() ? ledger_.known().find_newest(tag) : std::nullopt;
  if (!commit || level <= Level::snapshot) return {};
  const BackgroundPause::NoPauseGuard awaited(pause_);
  const auto is_reached = [&, id = commit->id](const Backlog& backlog) {
    return ledger_.known().has_reached(id, level) || !backlog.has_commit(id);
  };
  return executor_.wait_until(is_reached, deadline, false);
}

void Waits::quiesce() {
  if (!is_in_background()) return;
  group_.run_on_all_ranks([&] { comm::throw_if(wait_until_idle(DeferredWorkPolicy::drop).failure); });
}

void Waits::wait_after_submit() {
  if (settings_.after_each_submit) (void)wait_until_idle();
}

}  // namespace kedge::pipeline
