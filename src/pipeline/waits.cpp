#include "pipeline/waits.hpp"

#include <utility>
#include <vector>

#include "base/text.hpp"

namespace kedge::pipeline {

Waits::Waits(comm::Group group, const commits::Ledger& ledger, Executor& executor, StageList& stages,
             const Snapshots& snapshots, OwedOutputs& outputs, const CommitObservers& observers, Pause& pause,
             WaitSettings settings)
    : group_(std::move(group)),
      ledger_(ledger),
      executor_(executor),
      stages_(stages),
      snapshots_(snapshots),
      outputs_(outputs),
      observers_(observers),
      pause_(pause),
      settings_(settings) {}

std::size_t Waits::pending() const {
  const Backlog backlog = executor_.backlog();
  return backlog.is_stopping ? 0 : backlog.jobs.size();
}

Waited Waits::wait_until_below_limit() {
  const auto is_below = [&](const Backlog& backlog) { return backlog.jobs.size() < settings_.max_pending; };
  return executor_.wait_until(is_below, Deadline::never(), true);
}

std::optional<Failure> Waits::wait_for_room() {
  if (!is_full()) return failure();
  switch (settings_.when_full) {
    case WhenFull::block: {
      const Pause::Awaited awaited(pause_);
      return wait_until_below_limit().failure;
    }
    case WhenFull::skip: return failure();  // all ranks skip together
    case WhenFull::fail: break;
  }
  return Failure{ErrorCode::no_space,
                 compose("as many commits as pipeline.max_pending permits ({}) are pending; make checkpoints less "
                         "often, or set pipeline.when_full to block or skip",
                         pending()),
                 -1,
                 {},
                 0};
}

std::optional<Failure> Waits::wait_until_sealed() {
  if (!snapshots_.is_sealing()) return failure();
  const Pause::Awaited awaited(pause_);
  const auto is_sealed = [this](const Backlog& backlog) { return backlog.is_stopping || !snapshots_.is_sealing(); };
  return executor_.wait_until(is_sealed, Deadline::never(), false).failure;
}

Waited Waits::wait_until_idle(Rest rest, Deadline deadline) {
  const Pause::Awaited awaited(pause_);
  if (rest == Rest::given_up) executor_.give_up_after_open();
  const auto is_idle = [&](const Backlog& backlog) {
    return backlog.jobs.empty() && !backlog.tidies && (!backlog.is_after_open || rest == Rest::ignored);
  };
  return executor_.wait_until(is_idle, deadline, true);
}

Waited Waits::wait_for(std::string_view tag, Level level, Deadline deadline) {
  const auto commit = is_in_background() ? ledger_.known().newest_of(tag) : std::nullopt;
  if (!commit || level <= Level::snapshot) return {};
  const Pause::Awaited awaited(pause_);
  const auto is_reached = [&, id = commit->id](const Backlog& backlog) {
    return ledger_.known().has_reached(id, level) || !backlog.has(id);
  };
  return executor_.wait_until(is_reached, deadline, false);
}

void Waits::quiesce() {
  if (!is_in_background()) return;
  group_.together([&] { comm::throw_if(wait_until_idle(Rest::given_up).failure); });
}

void Waits::submitted() {
  if (settings_.after_each_submit) (void)wait_until_idle();
}

void Waits::skip_flushes() {
  const Pause::Awaited awaited(pause_);
  const std::size_t flush = stages_.index_of(Level::persistent);
  const std::uint64_t begun = group_.max(executor_.hold());
  std::vector<CommitProgress> skipped = executor_.skip(flush, begun);
  if (!skipped.empty()) stages_[flush].turns->make_due();
  skipped_ += skipped.size();
  for (CommitProgress& progress : skipped) {
    StageProgress& stage = progress.stages[flush];
    stage.failure = Failure{ErrorCode::not_found,
                            compose("the flush of {} was skipped: checkpoints are made faster than they can be flushed "
                                    "(pipeline.when_full = skip; {} so far)",
                                    progress.commit.tag, skipped_),
                            -1,
                            {},
                            0};
    if (progress.commit.is_output) outputs_.note();
    observers_.tell(&CommitObserver::skipped, progress, stage);
  }
  group_.together([&] { comm::throw_if(wait_until_below_limit().failure); });
}

}  // namespace kedge::pipeline
