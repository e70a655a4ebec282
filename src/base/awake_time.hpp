// Time as waits count it: without that in which nobody ran, because the process was suspended, frozen or stopped.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace kedge {

/// Adds up for how long those who wait did not run. They ask again and again; who asked far too late did not wait in
/// between. Pure: the caller says what time it is.
class AwakeTime {
 public:
  using Seconds = std::chrono::duration<double>;

  /// The longest time between two looks of one wait that counts in full. Of a longer one as much counts, so that a wait
  /// whose every look takes long still ends.
  static constexpr Seconds kLongestLook{0.25};
  /// Others may be continued a little later, or be slow at first: at most this much does not count besides.
  static constexpr Seconds kGraceMax{30};

  explicit AwakeTime(Seconds begun) noexcept : last_end_(begun) {}

  /// Somebody who waits looked at `before`, and not again until `now`.
  void looked(Seconds before, Seconds now) noexcept;
  /// What does not count of all the time so far.
  [[nodiscard]] Seconds uncounted() const noexcept { return uncounted_; }
  /// For how long nobody ran.
  [[nodiscard]] Seconds stopped() const noexcept { return stopped_; }

 private:
  Seconds last_end_;  ///< of a stop; several see the same one
  Seconds uncounted_{0};
  Seconds stopped_{0};
};

/// One wait by a Clock.
class WaitTime {
 public:
  explicit WaitTime(Clock& clock) : clock_(clock), looked_(clock.seconds()), begun_(looked_), awake_(begun_) {}

  /// For how long it has waited. To be called far more often than every AwakeTime::kLongestLook.
  [[nodiscard]] double look_s();

 private:
  Clock& clock_;
  AwakeTime::Seconds looked_;
  AwakeTime::Seconds begun_;
  AwakeTime awake_;
};

}  // namespace kedge
