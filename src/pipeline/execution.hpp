// Where the work on a commit is done: within a call of the application, or in the worker's thread.
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

/// What the work asks of the place where it is done, and tells it. Lives as long as a piece of work.
class Execution {
 public:
  explicit Execution(comm::Group group) : group_(std::move(group)) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  virtual ~Execution() = default;

  /// What the work communicates on.
  [[nodiscard]] const comm::Group& group() const noexcept { return group_; }
  /// COLLECTIVE. The group, with time for sending so many bytes where that is slowed down on purpose.
  [[nodiscard]] virtual comm::Group with_time_for(std::uint64_t /*sent_bytes*/) const { return group_; }
  /// Which files may be retired meanwhile.
  [[nodiscard]] virtual store::RetireScope may_retire() const noexcept = 0;
  /// COLLECTIVE. After a stage that succeeded: tidies up, or leaves that until nobody waits for the commit.
  [[nodiscard]] virtual std::optional<Failure> tidy(Stage& stage) const = 0;
  /// Whether the work is done within a call of the application.
  [[nodiscard]] virtual bool blocks_application() const noexcept { return true; }
  /// COLLECTIVE. Waits before a stage is tried again. False if it is not tried again, as something else has to be done.
  [[nodiscard]] virtual bool wait_before_retry(std::chrono::duration<double> /*wait*/) { return false; }
  /// Wakes who waits for a commit to come further.
  virtual void made_progress() {}
  /// Changes a job, which other threads may look at.
  virtual void change(const std::function<void()>& change) { change(); }
  /// Whether optional work should stop for something more urgent.
  [[nodiscard]] virtual bool should_yield() const { return true; }
  /// Whether the work after an open is to be given up, as far as it is only worth something.
  [[nodiscard]] virtual bool is_given_up() const { return false; }
  /// Begins and ends what sends from files outside of a job.
  virtual void set_sending(bool /*begins*/) {}
  /// The work after an open has protected what was to be protected, or will not.
  virtual void opened_is_protected() {}

 private:
  comm::Group group_;
};

/// In a call of the application, which waits for the work.
class InlineExecution final : public Execution {
 public:
  explicit InlineExecution(const comm::Group& group) : Execution(group) {}
  [[nodiscard]] store::RetireScope may_retire() const noexcept override { return store::RetireScope::all; }
  [[nodiscard]] std::optional<Failure> tidy(Stage& stage) const override { return stage.tidy(group()); }
  [[nodiscard]] bool is_given_up() const override { return true; }
};

}  // namespace kedge::pipeline
