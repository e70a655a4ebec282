#include "pipeline/worker.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/vote.hpp"

namespace kedge::pipeline {

/// Execution in the worker's thread.
class Worker::WorkerExecution final : public Execution {
 public:
  WorkerExecution(const Channel& channel, State& state)
      : Execution(channel.group), worker_state_(state), pace_(channel.pace.get()) {}

  /// Adds the longest delay that the rate limit causes on any rank.
  [[nodiscard]] comm::Group with_timeout_for(std::uint64_t sent_bytes) const override {
    if (pace_ == nullptr) return group();
    const auto paced_ms = static_cast<std::uint64_t>(pace_->seconds_for(sent_bytes) * 1000);
    return group().with_timeout(group().timeout() + std::chrono::milliseconds(group().max(paced_ms)));
  }
  [[nodiscard]] store::RetireScope retire_scope() const noexcept override { return store::RetireScope::known; }
  [[nodiscard]] std::optional<Failure> clean_up(Stage& /*stage*/) const override { return std::nullopt; }
  [[nodiscard]] bool blocks_application() const noexcept override { return false; }
  [[nodiscard]] bool wait_before_retry(std::chrono::duration<double> wait) override;
  void notify_progress() override { worker_state_.done->raise(); }
  void change_job(const std::function<void()>& change) override {
    const std::lock_guard guard(worker_state_.mutex);
    change();
  }
  [[nodiscard]] bool should_yield() const override {
    const std::lock_guard guard(worker_state_.mutex);
    return worker_state_.is_stopping || worker_state_.is_deferred_work_dropped || !worker_state_.jobs.empty();
  }
  [[nodiscard]] bool is_deferred_work_dropped() const override {
    const std::lock_guard guard(worker_state_.mutex);
    return worker_state_.is_deferred_work_dropped;
  }
  void set_sending(bool begins) override {
    const std::lock_guard guard(worker_state_.mutex);
    worker_state_.is_sending = begins;
  }
  void mark_opened_protected() override {
    change_job([&] { worker_state_.to_protect = {}; });
    worker_state_.done->raise();
  }

 private:
  [[nodiscard]] bool must_go_on() const {
    const std::lock_guard guard(worker_state_.mutex);
    return worker_state_.is_stopping || worker_state_.is_urgent || worker_state_.jobs.size() > 1;
  }

  State& worker_state_;
  const fs::RateLimiter* pace_;
};

/// Ends early if a job is submitted or somebody waits. Rank 0 decides, since ranks may learn of it at different times.
bool Worker::WorkerExecution::wait_before_retry(std::chrono::duration<double> wait) {
  bool in_full = true;
  if (group().is_root()) {
    const Deadline deadline = Deadline::after(wait);
    while (!must_go_on() && worker_state_.submitted->wait(deadline)) {
    }
    in_full = !must_go_on();
  }
  group().with_timeout(group().timeout() + wait).broadcast(in_full);
  return in_full;
}

Worker::Worker(const comm::Group& group, Channel channel, std::function<void()> begin, ExecutorTasks tasks)
    : state_(std::make_shared<State>()), channel_(std::move(channel)) {
  Communicator& communicator = channel_.group.communicator();
  state_->submitted = communicator.signal();
  state_->done = communicator.signal();
  const auto start = [&] {
    try {
      thread_ = communicator.start_thread(
          [state = state_, own = channel_, first = std::move(begin), what = std::move(tasks)] {
            first();
            run(*state, own, what);
          });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::no_space, compose("cannot create a thread for pipeline.mode = background: {}; raise the "
                                               "limit on processes (ulimit -u), or set pipeline.mode to inline",
                                               error.what()));
    }
  };
  try {
    group.run_on_all_ranks(start);
  } catch (...) {
    if (thread_) (void)stop(Deadline::never());
    throw;
  }
}

Worker::~Worker() {
  if (!stopped_) (void)stop(Deadline::never());
}

void Worker::run(State& state, const Channel& channel, const ExecutorTasks& tasks) {
  WorkerExecution execution(channel, state);
  while (true) {
    Turn turn = Turn::ended;
    const auto failure = attempt([&] { turn = next_turn(state, channel.group); });
    if (failure) (void)end_turn(state, failure, [] {});
    if (failure || turn == Turn::ended) return;
    const bool goes_on =
        turn == Turn::job ? run_job(state, execution, tasks) : run_deferred_step(state, execution, tasks);
    if (!goes_on) return;
  }
}

/// COLLECTIVE if there is deferred work, which all ranks know, whereas ranks may learn of a job at different times.
Worker::Turn Worker::next_turn(State& state, const comm::Group& channel) {
  const Turn turn = wait_for_turn(state, false);
  if (turn != Turn::step) return turn;
  bool job_first = false;
  {
    const std::lock_guard guard(state.mutex);
    job_first = !state.jobs.empty();
  }
  channel.broadcast(job_first);
  return job_first ? wait_for_turn(state, true) : Turn::step;
}

/// Local. A job that has begun keeps its position when others are added.
Worker::Turn Worker::wait_for_turn(State& state, bool of_job) {
  while (true) {
    {
      const std::lock_guard guard(state.mutex);
      if (state.is_stopping) return Turn::ended;
      if (state.has_deferred_work && !of_job) return Turn::step;
      if (!state.jobs.empty()) return Turn::job;
    }
    if (attempt([&] { (void)state.submitted->wait(Deadline::never()); })) return Turn::ended;
  }
}

/// Local. False if the worker has ended: unfinished jobs then stay as they are.
template <class Change>
bool Worker::end_turn(State& state, const std::optional<Failure>& failure, const Change& change) {
  {
    const std::lock_guard guard(state.mutex);
    if (state.is_stopping) return false;
    change();
    state.failure = failure;
    if (failure) {
      state.jobs.clear();
      state.is_cleaning_up = state.has_deferred_work = false;
    }
  }
  state.done->raise();
  return !failure;
}

bool Worker::run_job(State& state, Execution& execution, const ExecutorTasks& tasks) {
  Job* job = nullptr;
  {
    const std::lock_guard guard(state.mutex);
    job = &state.jobs.front();
  }
  const auto failure = attempt([&] { execution.group().run_or_leave([&] { tasks.run_job(execution, *job); }); });
  const bool goes_on = end_turn(state, failure, [&] {
    state.jobs.pop_front();
    state.is_cleaning_up = true;
  });
  if (!goes_on) return false;
  const auto after = attempt([&] { execution.group().run_or_leave([&] { tasks.clean_up(execution); }); });
  return end_turn(state, after, [&] { state.is_cleaning_up = false; });
}

bool Worker::run_deferred_step(State& state, Execution& execution, const ExecutorTasks& tasks) {
  bool more = false;
  const auto failure =
      attempt([&] { execution.group().run_or_leave([&] { more = tasks.run_deferred_step(execution); }); });
  return end_turn(state, failure, [&] { state.has_deferred_work = more; });
}

void Worker::submit(Job& job) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->failure) return;
    state_->jobs.push_back(std::move(job));
  }
  state_->submitted->raise();
}

void Worker::submit_deferred_work(const Id128& to_protect) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->failure) return;
    state_->has_deferred_work = true;
    state_->is_deferred_work_dropped = false;
    state_->to_protect = to_protect;
  }
  state_->submitted->raise();
}

Backlog Worker::State::backlog() const {
  Backlog backlog{{}, to_protect, is_cleaning_up, has_deferred_work, is_stopping, failure};
  for (const Job& job : jobs) {
    Backlog::WaitingJob& waiting = backlog.jobs.emplace_back(job.progress.commit.id, job.unsealed != nullptr);
    for (const StageProgress& stage : job.progress.stages) {
      if (stage.state == StageState::due) waiting.due.push_back(stage.level);
    }
  }
  return backlog;
}

Backlog Worker::backlog() const {
  const std::lock_guard guard(state_->mutex);
  return state_->backlog();
}

/// Steps of a job have deadlines of their own, so this wait ends.
WaitResult Worker::wait_until(const Condition& condition, Deadline deadline, bool urgent) {
  if (urgent) set_urgent(true);
  WaitResult waited{std::nullopt, false};
  while (true) {
    {
      const std::lock_guard guard(state_->mutex);
      if (state_->failure || condition(state_->backlog())) {
        waited = {state_->failure};
        break;
      }
    }
    if (deadline.passed() || !state_->done->wait(deadline)) break;
  }
  if (urgent) set_urgent(false);
  return waited;
}

void Worker::set_urgent(bool urgent) {
  {
    const std::lock_guard guard(state_->mutex);
    state_->is_urgent = urgent;
  }
  if (urgent) state_->submitted->raise();
}

void Worker::drop_deferred_work() {
  const std::lock_guard guard(state_->mutex);
  state_->is_deferred_work_dropped = true;
}

StopResult Worker::stop(Deadline deadline) {
  if (!stopped_) stopped_ = stop_thread(deadline);
  return *stopped_;
}

StopResult Worker::stop_thread(Deadline deadline) {
  bool cuts = false;
  {
    const std::lock_guard guard(state_->mutex);
    state_->is_stopping = true;
    cuts = !state_->jobs.empty() || state_->is_cleaning_up || state_->has_deferred_work;
  }
  state_->submitted->raise();
  if (cuts) channel_.group.communicator().interrupt();
  if (!thread_->join(deadline)) return StopResult::not_ended;
  const std::lock_guard guard(state_->mutex);
  const bool has_failed = state_->failure && comm::ends_communication(state_->failure->code);
  const bool was_idle = state_->jobs.empty() && !state_->is_cleaning_up && !state_->is_sending && !has_failed;
  return was_idle || channel_.ends_with_thread ? StopResult::idle : StopResult::interrupted;
}

}  // namespace kedge::pipeline
