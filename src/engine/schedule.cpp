#include "engine/schedule.hpp"

#include <algorithm>

namespace kedge::engine {

bool CheckpointSchedule::is_due(double now_s) {
  ++calls_;
  if (is_due_anyway_) return true;
  if (options_.every != 0) return calls_ % options_.every == 0;
  return is_due_by_time(now_s);
}

void CheckpointSchedule::committed(double blocked_s, double now_s) {
  is_due_anyway_ = false;
  blocked_s_ = blocked_s;
  last_s_ = now_s;
}

void CheckpointSchedule::failed(double blocked_s, double now_s) {
  blocked_s_ = std::max(blocked_s_, blocked_s);
  last_s_ = now_s;
}

/// The first checkpoint is due at once, as its cost is not known before: the earlier, the less can be lost.
bool CheckpointSchedule::is_due_by_time(double now_s) const {
  const double since_s = now_s - last_s_;
  if (options_.seconds > 0 && since_s >= options_.seconds) return true;
  if (options_.overhead <= 0) return false;
  return blocked_s_ < 0 || since_s * options_.overhead >= blocked_s_;
}

}  // namespace kedge::engine
