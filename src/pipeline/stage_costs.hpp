// Measured durations of a run's stages.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/recent_values.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// Stages of pending commits.
struct Ahead {
  std::size_t protects = 0;
  std::size_t flushes = 0;
  std::size_t seals = 0;
};

/// Seconds by this rank's clock, the maximum of the last few; nothing until a stage has succeeded.
struct StageCosts {
  std::optional<double> protect_s;
  std::optional<double> flush_s;
  Ahead ahead;
  std::optional<double> local_s = {};  ///< from create to the seal in the background
};

/// Collects the measurements. Thread-safe.
class StageTimer {
 public:
  explicit StageTimer(Clock& clock) : clock_(clock) {}

  [[nodiscard]] double now_s() const { return clock_.seconds(); }
  /// A stage reached this level.
  void add(Level reached, double seconds) {
    const std::lock_guard guard(mutex_);
    if (reached == Level::none) return;
    (reached == Level::persistent ? flush_s_ : reached == Level::local ? local_s_ : protect_s_).add(seconds);
  }
  [[nodiscard]] StageCosts costs(const Ahead& ahead) const {
    const std::lock_guard guard(mutex_);
    return {protect_s_.largest(), flush_s_.largest(), ahead, local_s_.largest()};
  }

 private:
  Clock& clock_;
  mutable std::mutex mutex_;
  RecentValues<4> local_s_;
  RecentValues<4> protect_s_;
  RecentValues<4> flush_s_;
};

}  // namespace kedge::pipeline
