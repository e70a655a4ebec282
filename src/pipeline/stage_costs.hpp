// Measured durations of a run's stages.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/recent_values.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// Numbers of stages of pending commits.
struct PendingStages {
  std::size_t protect_count = 0;
  std::size_t flush_count = 0;
  std::size_t seal_count = 0;
};

/// Seconds by this rank's clock, the maximum of the last few; nothing until a stage has succeeded.
struct StageCosts {
  std::optional<double> protect_s;
  std::optional<double> flush_s;
  PendingStages pending_stages;
  std::optional<double> local_s = {};  ///< time from create to the seal in the background
};

/// Collects the measurements. Thread-safe.
class StageTimer {
 public:
  explicit StageTimer(Clock& clock) : clock_(clock) {}

  [[nodiscard]] double now_s() const { return clock_.seconds(); }
  /// Records how long it took until a commit had this level.
  void add_duration(Level reached, double seconds) {
    const std::lock_guard guard(mutex_);
    if (reached == Level::local) local_s_.add(seconds);
    if (reached == Level::protected_) protect_s_.add(seconds);
    if (reached == Level::persistent) flush_s_.add(seconds);
  }
  [[nodiscard]] StageCosts costs(const PendingStages& ahead) const {
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
