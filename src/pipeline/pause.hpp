// When the work behind the application stands still, because the application needs the machine.
#pragma once

#include <atomic>
#include <chrono>

namespace kedge::pipeline {

/// Local. The application's threads say when, and the worker asks between pieces of its work. Other ranks' workers wait
/// for this one, so that what it stands still for one commit has a limit.
class Pause {
 public:
  using Seconds = std::chrono::duration<double>;

  explicit Pause(Seconds at_most) : at_most_(at_most) {}

  /// As long as one of these lives, the worker stands still.
  class Hold {
   public:
    explicit Hold(Pause& pause) noexcept : pause_(pause) { pause_.held_.fetch_add(1); }
    ~Hold() { pause_.held_.fetch_sub(1); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Pause& pause_;
  };
  /// As long as one of these lives, the application waits for the worker, which goes on whatever was asked before.
  class Awaited {
   public:
    explicit Awaited(Pause& pause) noexcept : pause_(pause) { pause_.awaited_.fetch_add(1); }
    ~Awaited() { pause_.awaited_.fetch_sub(1); }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

   private:
    Pause& pause_;
  };

  /// Until it is taken back.
  void ask(bool paused) noexcept { asked_ = paused; }
  /// The worker is to end: it stands still no more.
  void end() noexcept { ended_ = true; }

  // In the worker's thread.

  /// Of a commit.
  void begin() noexcept { left_ = at_most_; }
  /// Between two pieces: returns when the worker may go on.
  void pass() noexcept;

 private:
  [[nodiscard]] bool holds() const noexcept { return !ended_ && awaited_ == 0 && (asked_ || held_ != 0); }

  Seconds at_most_;
  Seconds left_{0};  ///< the worker's
  std::atomic<bool> asked_ = false;
  std::atomic<int> held_ = 0;
  std::atomic<int> awaited_ = 0;
  std::atomic<bool> ended_ = false;
};

}  // namespace kedge::pipeline
