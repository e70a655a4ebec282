// Time as the engine sees it, so that tests need not wait for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace kedge {

/// Source of time; tests replace it.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Returns nanoseconds since 1970, for the time written into superblocks.
  [[nodiscard]] virtual std::int64_t wall_ns() = 0;
  /// Returns monotonic seconds, for durations and waits.
  [[nodiscard]] virtual double seconds() = 0;
  virtual void sleep_for(std::chrono::duration<double> wait) = 0;
};

/// Returns the system's clock.
[[nodiscard]] std::shared_ptr<Clock> system_clock();

}  // namespace kedge
