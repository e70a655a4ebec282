// Where work on a commit runs: in a call of the application, or in the worker's thread.
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
  /// COLLECTIVE. The group, with a longer timeout if a rate limit delays sending so many bytes.
  [[nodiscard]] virtual comm::Group with_timeout_for(std::uint64_t /*sent_bytes*/) const { return group_; }
  /// Which files may be retired during the work.
  [[nodiscard]] virtual store::RetireScope may_retire() const noexcept = 0;
  /// COLLECTIVE. Called after a stage succeeded: tidies up, or postpones that until nobody waits for the commit.
  [[nodiscard]] virtual std::optional<Failure> clean_up(Stage& stage) const = 0;
  /// Whether the work runs in a call of the application.
  [[nodiscard]] virtual bool blocks_application() const noexcept { return true; }
  /// COLLECTIVE. Waits before a stage is retried; false if more urgent work forbids the retry.
  [[nodiscard]] virtual bool wait_before_retry(std::chrono::duration<double> /*wait*/) { return false; }
  /// Wakes threads that wait for a commit's progress.
  virtual void made_progress() {}
  /// Changes a job that other threads may read.
  virtual void change(const std::function<void()>& change) { change(); }
  /// Whether optional work should stop for something more urgent.
  [[nodiscard]] virtual bool should_yield() const { return true; }
  /// Whether optional deferred work should be dropped.
  [[nodiscard]] virtual bool is_given_up() const { return false; }
  /// Begins or ends sending from mapped files outside of a job.
  virtual void set_sending(bool /*begins*/) {}
  /// Deferred work has protected the opened commit, or will not.
  virtual void opened_is_protected() {}

 private:
  comm::Group group_;
};

/// Runs in a call of the application, which waits.
class InlineExecution final : public Execution {
 public:
  explicit InlineExecution(const comm::Group& group) : Execution(group) {}
  [[nodiscard]] store::RetireScope may_retire() const noexcept override { return store::RetireScope::all; }
  [[nodiscard]] std::optional<Failure> clean_up(Stage& stage) const override { return stage.clean_up(group()); }
  [[nodiscard]] bool is_given_up() const override { return true; }
};

}  // namespace kedge::pipeline
