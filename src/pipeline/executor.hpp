// Executes work on commits: in the application's calls or in a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/stage_costs.hpp"

namespace kedge::pipeline {

/// A commit whose containers must still be sealed.
class PendingSeal {
 public:
  PendingSeal() = default;
  PendingSeal(const PendingSeal&) = delete;
  PendingSeal& operator=(const PendingSeal&) = delete;
  virtual ~PendingSeal() = default;
  /// COLLECTIVE, once. Makes the commit local; or returns the failure, alike on all ranks, and nothing remains of it.
  /// Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> seal(const comm::Group& group) = 0;
};

struct Job {
  CommitProgress progress;
  CommitFiles files;
  std::unique_ptr<PendingSeal> unsealed = {};  ///< containers to be sealed before the stages, if any
};

/// The pipeline's work for an executor. All calls are COLLECTIVE on the execution's group; an exception ends the
/// executor.
struct ExecutorTasks {
  std::function<void(Execution& execution, Job& job)> run_job;
  /// Called after each of a worker's jobs and before the next one, when no caller waits.
  std::function<void(Execution& execution)> clean_up;
  /// Does one step of deferred work; false if nothing is left.
  std::function<bool(Execution& execution)> run_deferred_step;
};

/// Unfinished work of an executor.
struct Backlog {
  struct WaitingJob {
    Id128 commit_id;
    bool is_unsealed = false;
    std::vector<Level> due;  ///< levels of the stages that are due
  };
  std::vector<WaitingJob> jobs;    ///< the first is running or next
  Id128 to_protect;                ///< to be protected by deferred work, or none
  bool is_cleaning_up = false;     ///< stages are cleaning up after a job
  bool has_deferred_work = false;  ///< deferred work is left
  bool is_stopping = false;
  std::optional<Failure> failure;  ///< why the worker has ended

  /// Whether no commit is pending, nor an opened one to be protected.
  [[nodiscard]] bool is_idle() const noexcept { return jobs.empty() && to_protect.is_none(); }
  /// Whether this commit is pending, or opened and to be protected.
  [[nodiscard]] bool has_commit(const Id128& commit_id) const noexcept;
  /// Like has_commit(), but true for every commit once the worker has failed.
  [[nodiscard]] bool may_have_commit(const Id128& commit_id) const noexcept { return failure || has_commit(commit_id); }
  /// Returns the stages of pending jobs, by level.
  [[nodiscard]] PendingStages pending_stages() const noexcept;
};

/// Result of a wait.
struct WaitResult {
  std::optional<Failure> failure;  ///< why the worker has ended, if it has
  bool is_in_time = true;          ///< false after the deadline
};

/// Result of stopping a worker.
enum class StopResult : std::uint8_t {
  idle,         ///< nothing was running, except perhaps reads
  interrupted,  ///< a job was running or has failed: messages may still use its memory
  not_ended     ///< still running, with everything that it refers to
};

/// Executes jobs one after the other; every rank submits the same jobs in the same order. All calls are local, and for
/// the application's threads.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Whether submit() returns before the job is done.
  [[nodiscard]] virtual bool is_in_background() const noexcept = 0;
  virtual void submit(Job& job) = 0;
  /// Submits deferred work while nothing else is running. `to_protect`: the commit that it protects, or none.
  virtual void submit_deferred_work(const Id128& to_protect) = 0;
  /// Thread-safe.
  [[nodiscard]] virtual Backlog backlog() const { return {}; }
  /// Waits until the condition, checked after each step, holds or the worker has ended. `urgent`: jobs do not wait
  /// before retries meanwhile.
  using Condition = std::function<bool(const Backlog&)>;
  [[nodiscard]] virtual WaitResult wait_until(const Condition& /*condition*/, Deadline /*deadline*/, bool /*urgent*/) {
    return {};
  }
  /// Drops optional deferred work.
  virtual void drop_deferred_work() {}
  /// Ends it without communicating, also in the middle of a job. Nothing may be submitted after it. Returns how it
  /// was stopped the first time.
  [[nodiscard]] virtual StopResult stop(Deadline /*deadline*/) { return StopResult::idle; }
};

/// Completes all work within each call.
class InlineExecutor final : public Executor {
 public:
  InlineExecutor(comm::Group group, ExecutorTasks tasks) : group_(std::move(group)), tasks_(std::move(tasks)) {}

  [[nodiscard]] bool is_in_background() const noexcept override { return false; }
  void submit(Job& job) override {
    InlineExecution execution(group_);
    tasks_.run_job(execution, job);
  }
  void submit_deferred_work(const Id128& /*to_protect*/) override {
    InlineExecution execution(group_);
    while (tasks_.run_deferred_step(execution)) {
    }
  }

 private:
  comm::Group group_;
  ExecutorTasks tasks_;
};

}  // namespace kedge::pipeline
