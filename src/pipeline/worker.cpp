#include "pipeline/worker.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/vote.hpp"

namespace kedge::pipeline {

Worker::Worker(const comm::Group& group, Channel channel, std::function<void()> begin, Duties duties)
    : state_(std::make_shared<State>()), channel_(std::move(channel)) {
  Communicator& communicator = channel_.group.communicator();
  state_->submitted = communicator.signal();
  state_->done = communicator.signal();
  const auto start = [&] {
    try {
      thread_ = communicator.start_thread(
          [state = state_, own = channel_.group, first = std::move(begin), what = std::move(duties)] {
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

void Worker::run(State& state, const comm::Group& channel, const Duties& duties) {
  while (true) {
    Turn turn = Turn::ended;
    const auto failure = attempt([&] { turn = next_turn(state, channel); });
    if (failure) (void)end_turn(state, failure, [] {});
    if (failure || turn == Turn::ended) return;
    const bool goes_on = turn == Turn::job ? do_job(state, channel, duties) : do_step(state, channel, duties);
    if (!goes_on) return;
  }
}

/// COLLECTIVE, if there is upkeep: that is the same on every rank, while one may have heard of a job and another not.
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

/// Local. A job that is begun stays in its place when others are added.
Worker::Turn Worker::wait_for_turn(State& state, bool of_job) {
  while (true) {
    {
      const std::lock_guard guard(state.mutex);
      if (state.stopping) return Turn::ended;
      if (state.has_upkeep && !of_job) return Turn::step;
      if (!state.jobs.empty() && !state.held) {
        ++state.begun;
        return Turn::job;
      }
    }
    if (attempt([&] { (void)state.submitted->wait(Deadline::never()); })) return Turn::ended;
  }
}

/// Local. False if the worker has ended: what was begun stays then, as it was cut, or nothing is left.
template <class Change>
bool Worker::end_turn(State& state, const std::optional<Failure>& failure, const Change& change) {
  {
    const std::lock_guard guard(state.mutex);
    if (state.stopping) return false;
    change();
    state.failure = failure;
    if (failure) {
      state.jobs.clear();
      state.tidies = state.has_upkeep = false;
    }
  }
  state.done->raise();
  return !failure;
}

bool Worker::do_job(State& state, const comm::Group& channel, const Duties& duties) {
  Job* job = nullptr;
  {
    const std::lock_guard guard(state.mutex);
    job = &state.jobs.front();
  }
  const auto failure = attempt([&] { channel.guarded([&] { duties.work(channel, *job); }); });
  const bool goes_on = end_turn(state, failure, [&] {
    ++state.ended;
    state.jobs.pop_front();
    state.tidies = true;
  });
  if (!goes_on) return false;
  const auto after = attempt([&] { channel.guarded([&] { duties.tidy(channel); }); });
  return end_turn(state, after, [&] { state.tidies = false; });
}

bool Worker::do_step(State& state, const comm::Group& channel, const Duties& duties) {
  bool more = false;
  const auto failure = attempt([&] { channel.guarded([&] { more = duties.upkeep_step(channel); }); });
  return end_turn(state, failure, [&] { state.has_upkeep = more; });
}

void Worker::submit(Job job) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->failure) return;
    state_->jobs.push_back(std::move(job));
  }
  state_->submitted->raise();
}

void Worker::submit_upkeep(const Id128& to_protect) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->failure) return;
    state_->has_upkeep = true;
    state_->given_up = false;
    state_->to_protect = to_protect;
  }
  state_->submitted->raise();
}

std::size_t Worker::pending() const {
  const std::lock_guard guard(state_->mutex);
  return state_->stopping ? 0 : state_->jobs.size();
}

bool Worker::is_idle() const {
  const std::lock_guard guard(state_->mutex);
  return state_->jobs.empty() && state_->to_protect.is_none();
}

Ahead Worker::ahead() const {
  Ahead ahead;
  const std::lock_guard guard(state_->mutex);
  for (const Job& job : state_->jobs) {
    if (job.unsealed) ++ahead.seals;
    if (job.protect) ++ahead.protects;
    if (job.flush) ++ahead.flushes;
  }
  return ahead;
}

template <class Condition>
Waited Worker::wait_while_not(Condition&& condition, Deadline deadline) {
  while (true) {
    {
      const std::lock_guard guard(state_->mutex);
      if (state_->failure || condition(*state_)) return {state_->failure};
    }
    if (deadline.passed() || !state_->done->wait(deadline)) return {std::nullopt, false};
  }
}

void Worker::be_impatient(bool impatient) {
  {
    const std::lock_guard guard(state_->mutex);
    state_->impatient = impatient;
  }
  if (impatient) state_->submitted->raise();
}

/// Each step of a job waits for the other ranks with a deadline of its own.
Waited Worker::wait_until_below(std::size_t limit) {
  be_impatient(true);
  auto waited = wait_while_not([&](const State& state) { return state.jobs.size() < limit; }, Deadline::never());
  be_impatient(false);
  return waited;
}

Waited Worker::wait_until_idle(Rest rest, Deadline deadline) {
  be_impatient(true);
  if (rest == Rest::given_up) {
    const std::lock_guard guard(state_->mutex);
    state_->given_up = true;
  }
  const auto is_idle = [&](const State& state) {
    return state.jobs.empty() && !state.tidies && (!state.has_upkeep || rest == Rest::ignored);
  };
  auto waited = wait_while_not(is_idle, deadline);
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

bool Worker::gives_way() const {
  const std::lock_guard guard(state_->mutex);
  return state_->stopping || state_->given_up || !state_->jobs.empty();
}

bool Worker::upkeep_is_given_up() const {
  const std::lock_guard guard(state_->mutex);
  return state_->given_up;
}

void Worker::set_sending(bool begins) {
  const std::lock_guard guard(state_->mutex);
  state_->sends = begins;
}

void Worker::upkeep_protected() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->to_protect = {};
  }
  state_->done->raise();
}

bool Worker::has(const State& state, const Id128& commit_id) {
  const auto is_of_it = [&](const Job& job) { return job.files.commit.id == commit_id; };
  return state.to_protect == commit_id || std::ranges::any_of(state.jobs, is_of_it);
}

bool Worker::is_under_way(const Id128& commit_id) const {
  const std::lock_guard guard(state_->mutex);
  return state_->failure || has(*state_, commit_id);
}

Waited Worker::wait_for(const Id128& commit_id, const std::function<bool()>& enough, Deadline deadline) {
  return wait_while_not([&](const State& state) { return enough() || !has(state, commit_id); }, deadline);
}

Waited Worker::wait_until(const std::function<bool()>& enough) {
  return wait_while_not([&](const State& state) { return state.stopping || enough(); }, Deadline::never());
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
    cuts = !state_->jobs.empty() || state_->tidies || state_->has_upkeep;
  }
  state_->submitted->raise();
  if (cuts) channel_.group.communicator().interrupt();
  if (!thread_->join(deadline)) return Stopped::not_ended;
  const std::lock_guard guard(state_->mutex);
  const bool has_failed = state_->failure && comm::ends_communication(state_->failure->code);
  const bool was_idle = state_->jobs.empty() && !state_->tidies && !state_->sends && !has_failed;
  return was_idle || channel_.ends_with_thread ? Stopped::idle : Stopped::cut;
}

}  // namespace kedge::pipeline
