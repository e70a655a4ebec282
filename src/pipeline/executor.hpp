// Who does the work on commits: the application's calls, or a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "pipeline/execution.hpp"
#include "pipeline/job.hpp"
#include "pipeline/stage_costs.hpp"

namespace kedge::pipeline {

/// What there is to do. Everything is COLLECTIVE, on the execution's group; what it throws ends the executor.
struct Duties {
  std::function<void(Execution& execution, Job& job)> work;
  /// After each job of a worker, when nobody waits for it any more and before the next one.
  std::function<void(Execution& execution)> tidy;
  /// One step of the work after an open; false if nothing is left of it.
  std::function<bool(Execution& execution)> step_after_open;
};

/// What an executor has still to do.
struct Backlog {
  struct Waiting {
    Id128 commit_id;
    bool is_unsealed = false;
    std::vector<Level> due;  ///< what the stages reach that are due
  };
  std::vector<Waiting> jobs;   ///< the first is under way, or next
  Id128 to_protect;            ///< by the work after an open; none: nothing
  bool tidies = false;         ///< what follows a job is under way
  bool is_after_open = false;  ///< there is work after an open
  bool is_stopping = false;
  std::optional<Failure> failure;  ///< why the worker has ended

  /// Whether no commit is under way, nor is to be protected after it was opened.
  [[nodiscard]] bool is_idle() const noexcept { return jobs.empty() && to_protect.is_none(); }
  /// Whether this commit is under way, or to be protected after it was opened.
  [[nodiscard]] bool has(const Id128& commit_id) const noexcept;
  /// As has(); true for every commit once the worker has failed.
  [[nodiscard]] bool may_have(const Id128& commit_id) const noexcept { return failure || has(commit_id); }
  [[nodiscard]] Ahead ahead() const noexcept;
};

/// What a wait came to.
struct Waited {
  std::optional<Failure> failure;  ///< why the worker has ended, if it has
  bool in_time = true;             ///< what was waited for has come
};

/// How a worker was stopped.
enum class Stopped : std::uint8_t {
  idle,         ///< nothing was under way, or only reading, or nothing of it is any more
  interrupted,  ///< a job was, or has failed: messages may still come to and go from its memory
  not_ended     ///< not in time: it goes on with all that its work refers to
};

/// Takes jobs one after the other; every rank submits the same in the same order. All calls are local, and made by the
/// application's threads.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Whether submit() only hands a job over.
  [[nodiscard]] virtual bool is_in_background() const noexcept = 0;
  virtual void submit(Job& job) = 0;
  /// There is work after an open; nothing else is under way. `to_protect`: the commit that it protects, unless none.
  virtual void submit_after_open(const Id128& to_protect) = 0;
  /// From any thread.
  [[nodiscard]] virtual Backlog backlog() const { return {}; }
  /// Returns when this is so, which is asked after each step, or the worker has ended. `urgent`: a job does not wait
  /// meanwhile to be tried again.
  using Condition = std::function<bool(const Backlog&)>;
  [[nodiscard]] virtual Waited wait_until(const Condition& /*condition*/, Deadline /*deadline*/, bool /*urgent*/) {
    return {};
  }
  /// What there is to do after an open is given up, as far as it is only worth something.
  virtual void give_up_after_open() {}
  /// Ends it without communicating, also in the middle of a job. Nothing may be submitted after it. How it was stopped
  /// the first time.
  [[nodiscard]] virtual Stopped stop(Deadline /*deadline*/) { return Stopped::idle; }
};

/// Everything is done when a call returns.
class InlineExecutor final : public Executor {
 public:
  InlineExecutor(comm::Group group, Duties duties) : group_(std::move(group)), duties_(std::move(duties)) {}

  [[nodiscard]] bool is_in_background() const noexcept override { return false; }
  void submit(Job& job) override {
    InlineExecution execution(group_);
    duties_.work(execution, job);
  }
  void submit_after_open(const Id128& /*to_protect*/) override {
    InlineExecution execution(group_);
    while (duties_.step_after_open(execution)) {
    }
  }

 private:
  comm::Group group_;
  Duties duties_;
};

}  // namespace kedge::pipeline
