// Time as waits count it: without the time in which the process was suspended, frozen or stopped.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace kedge {

/// Adds up the time in which waits did not run. A wait looks again and again; if it looks far too late, it was stopped
/// in between. Pure: the caller says what time it is.
class AwakeTime {
 public:
  using Seconds = std::chrono::duration<double>;

  /// The longest time between two looks of one wait that counts in full. Of a longer one this much counts, so that a
  /// wait of which every look takes long still ends.
  static constexpr Seconds kLongestPoll{0.25};
  /// Other ranks may be continued a little later, or be slow at first: after a stop at most this much more is not
  /// counted.
  static constexpr Seconds kGraceMax{30};

  explicit AwakeTime(Seconds begun) noexcept : last_end_(begun) {}

  /// A wait looked at `before`, and not again until `now`.
  void record_check(Seconds before, Seconds now) noexcept;
  /// Time so far that does not count.
  [[nodiscard]] Seconds uncounted() const noexcept { return uncounted_; }
  /// For how long nobody ran.
  [[nodiscard]] Seconds stopped() const noexcept { return stopped_; }

 private:
  Seconds last_end_;  ///< of a stop; several waits see the same one
  Seconds uncounted_{0};
  Seconds stopped_{0};
};

/// One wait by a Clock.
class WaitTime {
 public:
  explicit WaitTime(Clock& clock) : clock_(clock), last_check_(clock.seconds()), begun_(last_check_), awake_(begun_) {}

  /// For how long it has waited. Call it far more often than every AwakeTime::kLongestPoll.
  [[nodiscard]] double elapsed_s();

 private:
  Clock& clock_;
  AwakeTime::Seconds last_check_;
  AwakeTime::Seconds begun_;
  AwakeTime awake_;
};

}  // namespace kedge
