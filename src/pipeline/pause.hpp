// Pauses background work while the application needs the machine.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "kedge/communicator.hpp"

namespace kedge::pipeline {

/// Local. The application's threads request pauses; the worker checks between pieces of work. Because other ranks'
/// workers wait for this one, the paused time is limited: per commit for requested pauses, per hold for holds. Ranks
/// begin holds together, so their pauses do not add up.
class Pause {
 public:
  using Seconds = std::chrono::duration<double>;
  using Clock = std::chrono::steady_clock;

  /// `too_long` is called once, in the worker's thread, for each requested pause that the limit ended.
  explicit Pause(Seconds at_most, std::function<void(Seconds limit)> too_long = {})
      : at_most_(at_most), too_long_(std::move(too_long)) {}

  /// Sets how to wake the worker, before it exists: `changed` belongs to its communicator.
  void set_signal(std::unique_ptr<Communicator::Signal> changed) noexcept { changed_ = std::move(changed); }

  /// Pauses the worker for its lifetime.
  class Guard {
   public:
    explicit Guard(Pause& pause) noexcept : pause_(pause) {
      if (pause_.held_.fetch_add(1) == 0) pause_.held_since_ = Clock::now();
    }
    ~Guard() {
      pause_.held_.fetch_sub(1);
      pause_.notify();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Pause& pause_;
  };
  /// Says that the application waits for the worker, which then does not pause.
  class Awaited {
   public:
    explicit Awaited(Pause& pause) noexcept : pause_(pause) {
      pause_.awaited_.fetch_add(1);
      pause_.notify();
    }
    ~Awaited() { pause_.awaited_.fetch_sub(1); }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

   private:
    Pause& pause_;
  };

  /// Requests a pause until it is withdrawn.
  void ask(bool paused) noexcept {
    if (!asked_.exchange(paused)) has_reported_ = false;
    notify();
  }
  /// The worker must end and no longer pauses.
  void end() noexcept {
    ended_ = true;
    notify();
  }
  [[nodiscard]] bool is_ended() const noexcept { return ended_; }

  // In the worker's thread.

  /// A commit begins.
  void begin() noexcept { left_ = at_most_; }
  /// Call it between two pieces: returns when the worker may go on.
  void pass();

  /// Total paused time so far. Thread-safe.
  [[nodiscard]] Seconds paused_time() const noexcept { return paused_time_; }

 private:
  [[nodiscard]] bool holds() const noexcept { return !ended_ && awaited_ == 0 && (asked_ || held_ != 0); }
  /// How long the worker may still pause.
  [[nodiscard]] Seconds left() const noexcept;
  /// Wakes the worker; costs nothing while it does not wait.
  void notify() noexcept {
    if (waits_) changed_->raise();
  }

  std::unique_ptr<Communicator::Signal> changed_;  ///< null without a worker
  Seconds at_most_;
  std::function<void(Seconds)> too_long_;
  Seconds left_{0};               ///< of requested pauses; for the worker
  Clock::time_point gave_up_on_;  ///< start of a hold that was too long; for the worker
  std::atomic<Seconds> paused_time_ = Seconds(0);
  std::atomic<bool> waits_ = false;  ///< the worker waits or is about to; it checks again after setting this
  std::atomic<bool> asked_ = false;
  std::atomic<bool> has_reported_ = false;  ///< too_long was called for this pause
  std::atomic<int> held_ = 0;
  std::atomic<Clock::time_point> held_since_ = Clock::time_point();
  std::atomic<int> awaited_ = 0;
  std::atomic<bool> ended_ = false;
};

}  // namespace kedge::pipeline
