#include "pipeline/worker.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::pipeline {

Worker::Worker(const comm::Group& group, comm::Group channel, std::function<void()> begin, Work work)
    : state_(std::make_shared<State>()), channel_(std::move(channel)) {
  Communicator& communicator = channel_.communicator();
  state_->submitted = communicator.signal();
  state_->done = communicator.signal();
  const auto start = [&] {
    try {
      thread_ =
          communicator.start_thread([state = state_, own = channel_, first = std::move(begin), what = std::move(work)] {
            first();
            run(*state, own, what);
          });
    } catch (const std::system_error& error) {
      throw Error(ErrorCode::no_space, compose("the system gives no thread for pipeline.mode = background: {}; raise "
                                               "its limits (ulimit -u), or set the mode to inline",
                                               error.what()));
    }
  };
  try {
    group.together(start);
  } catch (...) {
    if (thread_) (void)stop(Deadline::never());
    throw;
  }
}

Worker::~Worker() {
  if (!stopped_) (void)stop(Deadline::never());
}

void Worker::run(State& state, const comm::Group& channel, const Work& work) {
  while (true) {
    Job* job = nullptr;
    {
      const std::lock_guard guard(state.mutex);
      if (state.stopping) return;
      if (!state.jobs.empty() && !state.held) {
        job = &state.jobs.front();  // stays in its place when others are added
        ++state.begun;
      }
    }
    if (job == nullptr) {
      if (attempt([&] { (void)state.submitted->wait(Deadline::never()); })) return;
      continue;
    }
    const auto failure = attempt([&] { work(channel, *job); });
    {
      const std::lock_guard guard(state.mutex);
      if (state.stopping) return;  // the job stays: it was cut
      state.failure = failure;
      ++state.ended;
      if (failure) state.jobs.clear();
      else state.jobs.pop_front();
    }
    state.done->raise();
    if (failure) return;
  }
}

void Worker::submit(Job job) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->failure) return;
    state_->jobs.push_back(std::move(job));
  }
  state_->submitted->raise();
}

std::size_t Worker::pending() const {
  const std::lock_guard guard(state_->mutex);
  return state_->jobs.size();
}

Ahead Worker::ahead() const {
  Ahead ahead;
  const std::lock_guard guard(state_->mutex);
  for (const Job& job : state_->jobs) {
    if (job.protect) ++ahead.protects;
    if (job.flush) ++ahead.flushes;
  }
  return ahead;
}

template <class Condition>
Waited Worker::wait_until(Condition&& condition, Deadline deadline) {
  while (true) {
    {
      const std::lock_guard guard(state_->mutex);
      if (state_->failure || condition(state_->jobs)) return {state_->failure};
    }
    if (deadline.passed() || !state_->done->wait(deadline)) return {std::nullopt, false};
  }
}

/// Each step of a job waits for the other ranks with a deadline of its own.
Waited Worker::wait_until_below(std::size_t limit, Deadline deadline) {
  const auto be_impatient = [&](bool impatient) {
    const std::lock_guard guard(state_->mutex);
    state_->impatient = impatient;
  };
  be_impatient(true);
  state_->submitted->raise();
  auto waited = wait_until([&](const std::deque<Job>& jobs) { return jobs.size() < limit; }, deadline);
  be_impatient(false);
  return waited;
}

/// The other ranks learn of it from rank 0: what they know may be a moment older or newer.
bool Worker::wait_before_retry(const comm::Group& channel, comm::Group::Seconds wait) {
  bool in_full = true;
  if (channel.is_root()) {
    const Deadline deadline = Deadline::after(wait);
    while (!must_go_on() && state_->submitted->wait(deadline)) {
    }
    in_full = !must_go_on();
  }
  channel.with_timeout(channel.timeout() + wait).broadcast(in_full);
  return in_full;
}

bool Worker::must_go_on() const {
  const std::lock_guard guard(state_->mutex);
  return state_->stopping || state_->impatient || state_->jobs.size() > 1;
}

Waited Worker::wait_for(const Id128& commit_id, const std::function<bool()>& enough, Deadline deadline) {
  const auto is_over = [&](const std::deque<Job>& jobs) {
    return enough() || std::ranges::none_of(jobs, [&](const Job& job) { return job.files.commit.id == commit_id; });
  };
  return wait_until(is_over, deadline);
}

std::uint64_t Worker::hold() {
  const std::lock_guard guard(state_->mutex);
  state_->held = true;
  return state_->begun;
}

std::vector<CommitHead> Worker::skip_flushes(std::uint64_t begun) {
  std::vector<CommitHead> skipped;
  {
    const std::lock_guard guard(state_->mutex);
    std::uint64_t number = state_->ended;
    for (Job& job : state_->jobs) {
      if (++number > begun && std::exchange(job.flush, false)) skipped.push_back(job.files.commit);
    }
    state_->held = false;
  }
  state_->submitted->raise();
  return skipped;
}

std::optional<Failure> Worker::failure() const {
  const std::lock_guard guard(state_->mutex);
  return state_->failure;
}

Worker::Stopped Worker::stop(Deadline deadline) {
  if (!stopped_) stopped_ = stop_thread(deadline);
  return *stopped_;
}

Worker::Stopped Worker::stop_thread(Deadline deadline) {
  bool cuts = false;
  {
    const std::lock_guard guard(state_->mutex);
    state_->stopping = true;
    cuts = !state_->jobs.empty();
  }
  state_->submitted->raise();
  if (cuts) channel_.communicator().interrupt();
  if (!thread_->join(deadline)) return Stopped::not_ended;
  const std::lock_guard guard(state_->mutex);
  return state_->jobs.empty() ? Stopped::idle : Stopped::cut;
}

}  // namespace kedge::pipeline
