// When the work in the background stands still, because the application needs the machine.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "kedge/communicator.hpp"

namespace kedge::pipeline {

/// Local. The application's threads say when, and the worker asks between pieces of its work. Other ranks' workers wait
/// for this one, so the time that it stands still is limited: for one commit, where that was asked for; else from the
/// moment on when the hold began, which ranks do together, so that what they wait for each other does not add up.
class Pause {
 public:
  using Seconds = std::chrono::duration<double>;
  using Clock = std::chrono::steady_clock;

  /// `too_long` is called, in the worker's thread, once for each pause that was asked for and ended by its limit.
  explicit Pause(Seconds at_most, std::function<void(Seconds limit)> too_long = {})
      : at_most_(at_most), too_long_(std::move(too_long)) {}

  /// Before there is a worker, which waits for `changed`: of the communicator that its thread belongs to.
  void tell_by(std::unique_ptr<Communicator::Signal> changed) noexcept { changed_ = std::move(changed); }

  /// As long as one of these lives, the worker stands still.
  class Hold {
   public:
    explicit Hold(Pause& pause) noexcept : pause_(pause) {
      if (pause_.held_.fetch_add(1) == 0) pause_.held_since_ = Clock::now();
    }
    ~Hold() {
      pause_.held_.fetch_sub(1);
      pause_.tell();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Pause& pause_;
  };
  /// As long as one of these lives, the application waits for the worker, which goes on whatever was asked before.
  class Awaited {
   public:
    explicit Awaited(Pause& pause) noexcept : pause_(pause) {
      pause_.awaited_.fetch_add(1);
      pause_.tell();
    }
    ~Awaited() { pause_.awaited_.fetch_sub(1); }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

   private:
    Pause& pause_;
  };

  /// Until it is taken back.
  void ask(bool paused) noexcept {
    if (!asked_.exchange(paused)) told_ = false;
    tell();
  }
  /// The worker is to end: it stands still no more.
  void end() noexcept {
    ended_ = true;
    tell();
  }
  [[nodiscard]] bool is_ended() const noexcept { return ended_; }

  // In the worker's thread.

  /// Of a commit.
  void begin() noexcept { left_ = at_most_; }
  /// Between two pieces: returns when the worker may go on.
  void pass();

  /// How long the worker has stood still so far. From any thread.
  [[nodiscard]] Seconds stood() const noexcept { return stood_; }

 private:
  [[nodiscard]] bool holds() const noexcept { return !ended_ && awaited_ == 0 && (asked_ || held_ != 0); }
  /// How long the worker may still stand still.
  [[nodiscard]] Seconds left() const noexcept;
  /// After a change: costs nothing while the worker does not wait.
  void tell() noexcept {
    if (waits_) changed_->raise();
  }

  std::unique_ptr<Communicator::Signal> changed_;  ///< null: there is no worker that could stand still
  Seconds at_most_;
  std::function<void(Seconds)> too_long_;
  Seconds left_{0};               ///< of a pause that was asked for; the worker's
  Clock::time_point gave_up_on_;  ///< which hold it stands still for no more; likewise
  std::atomic<Seconds> stood_ = Seconds(0);
  std::atomic<bool> waits_ = false;  ///< the worker, or is about to: it looks again after it has said so
  std::atomic<bool> asked_ = false;
  std::atomic<bool> told_ = false;  ///< of this one, that it was too long
  std::atomic<int> held_ = 0;
  std::atomic<Clock::time_point> held_since_ = Clock::time_point();
  std::atomic<int> awaited_ = 0;
  std::atomic<bool> ended_ = false;
};

}  // namespace kedge::pipeline
