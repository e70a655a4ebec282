// Time as waits count it: without the time in which the process was suspended, frozen or stopped.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace kedge {

/// Adds up the time in which a process was stopped, from the times at which its waits check their conditions: a check
/// that comes far too late shows a stop. Pure: the caller says what time it is.
class AwakeTime {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Longest time between two checks of one wait that counts in full. Of a longer time this much counts, so that a wait
  /// whose checks all take long still ends.
  static constexpr Seconds kLongestPoll{0.25};
  /// Limit of the grace after a stop: other ranks may be continued a little later, or be slow at first.
  static constexpr Seconds kGraceMax{30};

  explicit AwakeTime(Seconds begun) noexcept : last_stop_end_(begun) {}

  /// Records that a wait checked its condition at `before`, and not again until `now`.
  void record_check(Seconds before, Seconds now) noexcept;
  /// Returns the time that waits must not count, grace included.
  [[nodiscard]] Seconds uncounted_time() const noexcept { return uncounted_time_; }
  /// Returns the time in which the process was stopped.
  [[nodiscard]] Seconds stopped_time() const noexcept { return stopped_time_; }

 private:
  Seconds last_stop_end_;  ///< end of the last stop, which several waits see
  Seconds uncounted_time_{0};
  Seconds stopped_time_{0};
};

/// Measures one wait by a Clock.
class WaitTime {
 public:
  explicit WaitTime(Clock& clock) : clock_(clock), last_check_(clock.seconds()), start_(last_check_), awake_(start_) {}

  /// Returns how long the wait has lasted, without stops. Call it far more often than every AwakeTime::kLongestPoll.
  [[nodiscard]] double elapsed_s();

 private:
  Clock& clock_;
  AwakeTime::Seconds last_check_;
  AwakeTime::Seconds start_;
  AwakeTime awake_;
};

}  // namespace kedge
