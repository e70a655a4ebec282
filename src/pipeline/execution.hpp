// The thread that works on a commit: the application's, in a call, or the worker's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "pipeline/stage.hpp"
#include "store/retirement.hpp"

namespace kedge::pipeline {

/// Interface between a piece of work and the thread that runs it.
class Execution {
 public:
  explicit Execution(comm::Group group) : group_(std::move(group)) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  virtual ~Execution() = default;

  /// The group to communicate on.
  [[nodiscard]] const comm::Group& group() const noexcept { return group_; }
  /// COLLECTIVE. Returns the group, with a longer timeout if a rate limit delays sending so many bytes.
  [[nodiscard]] virtual comm::Group with_timeout_for(std::uint64_t /*sent_bytes*/) const { return group_; }
  /// Returns which files may be retired during the work.
  [[nodiscard]] virtual store::RetireScope retire_scope() const noexcept = 0;
  /// COLLECTIVE. Cleans up after a stage that succeeded, or postpones that until no caller waits for the commit.
  [[nodiscard]] virtual std::optional<Failure> clean_up(Stage& stage) const = 0;
  /// Whether the work runs in a call of the application.
  [[nodiscard]] virtual bool blocks_application() const noexcept { return true; }
  /// COLLECTIVE. Waits before a stage is retried; false if more urgent work forbids the retry.
  [[nodiscard]] virtual bool wait_before_retry(std::chrono::duration<double> /*wait*/) { return false; }
  /// Wakes threads that wait for a commit's progress.
  virtual void notify_progress() {}
  /// Changes a job that other threads may read.
  virtual void change_job(const std::function<void()>& change) { change(); }
  /// Whether optional work should stop for something more urgent.
  [[nodiscard]] virtual bool should_yield() const { return true; }
  /// Whether optional deferred work should be dropped.
  [[nodiscard]] virtual bool is_deferred_work_dropped() const { return false; }
  /// Begins or ends sending from mapped files outside of a job.
  virtual void set_sending(bool /*begins*/) {}
  /// Records that deferred work has protected the opened commit, or will not.
  virtual void mark_opened_protected() {}

 private:
  comm::Group group_;
};

/// Runs in a call of the application, which waits.
class InlineExecution final : public Execution {
 public:
  explicit InlineExecution(const comm::Group& group) : Execution(group) {}
  [[nodiscard]] store::RetireScope retire_scope() const noexcept override { return store::RetireScope::all; }
  [[nodiscard]] std::optional<Failure> clean_up(Stage& stage) const override { return stage.clean_up(group()); }
  [[nodiscard]] bool is_deferred_work_dropped() const override { return true; }
};

}  // namespace kedge::pipeline
