// Pauses background work while the application needs the machine.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "kedge/communicator.hpp"

namespace kedge::pipeline {

/// Pauses of the worker. The application's threads request pauses; the worker checks between pieces of work. Because
/// other ranks' workers wait for this one, the paused time is limited: per commit for requested pauses, per guard for
/// guards. Ranks begin guards together, so their pauses do not add up. Local.
class BackgroundPause {
 public:
  using Seconds = std::chrono::duration<double>;
  using Clock = std::chrono::steady_clock;

  /// `on_too_long` is called once, in the worker's thread, for each requested pause that the limit ended.
  explicit BackgroundPause(Seconds paused_time_max, std::function<void(Seconds limit)> on_too_long = {})
      : paused_time_max_(paused_time_max), on_too_long_(std::move(on_too_long)) {}

  /// Sets how to wake the worker, before it exists: `changed` belongs to its communicator.
  void set_signal(std::unique_ptr<Communicator::Signal> changed) noexcept { wake_signal_ = std::move(changed); }

  /// Pauses the worker for its own lifetime.
  class Guard {
   public:
    explicit Guard(BackgroundPause& pause) noexcept : pause_(pause) {
      if (pause_.guard_count_.fetch_add(1) == 0) pause_.guarded_since_ = Clock::now();
    }
    ~Guard() {
      pause_.guard_count_.fetch_sub(1);
      pause_.notify();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    BackgroundPause& pause_;
  };
  /// Lets the worker run for its own lifetime, because the application waits for it.
  class NoPauseGuard {
   public:
    explicit NoPauseGuard(BackgroundPause& pause) noexcept : pause_(pause) {
      pause_.waiter_count_.fetch_add(1);
      pause_.notify();
    }
    ~NoPauseGuard() { pause_.waiter_count_.fetch_sub(1); }
    NoPauseGuard(const NoPauseGuard&) = delete;
    NoPauseGuard& operator=(const NoPauseGuard&) = delete;

   private:
    BackgroundPause& pause_;
  };

  /// Requests a pause, or withdraws the request.
  void set_requested(bool paused) noexcept {
    if (!is_requested_.exchange(paused)) has_reported_ = false;
    notify();
  }
  /// Ends all pauses: the worker must end.
  void end_pauses() noexcept {
    has_ended_ = true;
    notify();
  }
  [[nodiscard]] bool is_ended() const noexcept { return has_ended_; }

  // In the worker's thread.

  /// Restarts the limit of requested pauses for a new commit.
  void restart_limit() noexcept { remaining_time_ = paused_time_max_; }
  /// Returns when the worker may continue. Call it between two pieces.
  void wait_while_paused();

  /// Total paused time so far. Thread-safe.
  [[nodiscard]] Seconds paused_time() const noexcept { return paused_time_; }

 private:
  [[nodiscard]] bool must_pause() const noexcept {
    return !has_ended_ && waiter_count_ == 0 && (is_requested_ || guard_count_ != 0);
  }
  /// Returns how long the worker may still pause.
  [[nodiscard]] Seconds remaining_time() const noexcept;
  /// Wakes the worker; costs nothing while it does not wait.
  void notify() noexcept {
    if (is_waiting_) wake_signal_->raise();
  }

  std::unique_ptr<Communicator::Signal> wake_signal_;  ///< null without a worker
  Seconds paused_time_max_;
  std::function<void(Seconds)> on_too_long_;
  Seconds remaining_time_{0};                ///< limit of requested pauses that is left; used by the worker
  Clock::time_point abandoned_guard_since_;  ///< begin of a guard that was too long; used by the worker
  std::atomic<Seconds> paused_time_ = Seconds(0);
  std::atomic<bool> is_waiting_ = false;  ///< the worker waits or is about to; it checks again after setting this
  std::atomic<bool> is_requested_ = false;
  std::atomic<bool> has_reported_ = false;  ///< on_too_long was called for this pause
  std::atomic<int> guard_count_ = 0;
  std::atomic<Clock::time_point> guarded_since_ = Clock::time_point();
  std::atomic<int> waiter_count_ = 0;
  std::atomic<bool> has_ended_ = false;
};

}  // namespace kedge::pipeline
