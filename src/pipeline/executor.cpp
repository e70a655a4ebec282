#include "pipeline/executor.hpp"

#include <algorithm>

namespace kedge::pipeline {

bool Backlog::has_commit(const Id128& commit_id) const noexcept {
  return to_protect == commit_id ||
         std::ranges::any_of(jobs, [&](const WaitingJob& job) { return job.commit_id == commit_id; });
}

PendingStages Backlog::pending_stages() const noexcept {
  PendingStages ahead;
  for (const WaitingJob& job : jobs) {
    if (job.is_unsealed) ++ahead.seal_count;
    for (const Level level : job.due) {
      if (level == Level::protected_) ++ahead.protect_count;
      if (level == Level::persistent) ++ahead.flush_count;
    }
  }
  return ahead;
}

}  // namespace kedge::pipeline
