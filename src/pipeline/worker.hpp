// A background thread that executes jobs one after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "fs/rate_limiter.hpp"
#include "pipeline/executor.hpp"

namespace kedge::pipeline {

/// A worker's message channel.
struct Channel {
  comm::Group group;
  /// Messages are in progress only while the thread waits for them.
  bool ends_with_thread = false;
  std::shared_ptr<const fs::RateLimiter> pace = {};  ///< null if unlimited
};

/// An exception of the work ends the worker and drops the remaining jobs. Deferred work proceeds step by step while
/// there is no job; before each step rank 0 says whether there is one, so that all ranks do the same.
class Worker final : public Executor {
 public:
  /// COLLECTIVE, on `group`. The work communicates only over `channel`, which is not used otherwise. The thread first
  /// calls `begin`. Throws the same Error on all ranks if any cannot create its thread.
  Worker(const comm::Group& group, Channel channel, std::function<void()> begin, ExecutorTasks tasks);
  /// Waits for the thread, unless stop() timed out.
  ~Worker() override;

  [[nodiscard]] bool is_in_background() const noexcept override { return true; }
  void submit(Job& job) override;
  void submit_deferred_work(const Id128& to_protect) override;
  [[nodiscard]] Backlog backlog() const override;
  [[nodiscard]] WaitResult wait_until(const Condition& condition, Deadline deadline, bool urgent) override;
  void drop_deferred_work() override;
  [[nodiscard]] StopResult stop(Deadline deadline) override;

 private:
  /// Shared with the thread, which may outlive the worker.
  struct State {
    std::mutex mutex;
    std::deque<Job> jobs;                   ///< the first one has begun, or is next
    bool is_urgent = false;                 ///< a caller waits for a job
    bool is_cleaning_up = false;            ///< stages are cleaning up after a job
    bool has_deferred_work = false;         ///< deferred work is left
    bool is_deferred_work_dropped = false;  ///< its optional parts are dropped
    bool is_sending = false;                ///< messages are sent from mapped files, outside of a job
    Id128 to_protect;                       ///< commit that deferred work will protect, or none
    bool is_stopping = false;
    std::optional<Failure> failure;
    std::unique_ptr<Communicator::Signal> submitted;
    std::unique_ptr<Communicator::Signal> done;

    [[nodiscard]] Backlog backlog() const;  ///< requires the mutex
  };
  class WorkerExecution;
  /// The worker's next action.
  enum class Turn : std::uint8_t { ended, job, step };

  [[nodiscard]] StopResult stop_thread(Deadline deadline);
  static void run(State& state, const Channel& channel, const ExecutorTasks& tasks);
  [[nodiscard]] static Turn next_turn(State& state, const comm::Group& channel);
  [[nodiscard]] static Turn wait_for_turn(State& state, bool of_job);
  [[nodiscard]] static bool run_job(State& state, Execution& execution, const ExecutorTasks& tasks);
  [[nodiscard]] static bool run_deferred_step(State& state, Execution& execution, const ExecutorTasks& tasks);
  template <class Change>
  [[nodiscard]] static bool end_turn(State& state, const std::optional<Failure>& failure, const Change& change);
  void set_urgent(bool urgent);

  std::shared_ptr<State> state_;
  Channel channel_;
  std::unique_ptr<Communicator::Thread> thread_;
  std::optional<StopResult> stopped_;
};

}  // namespace kedge::pipeline
