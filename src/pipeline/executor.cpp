#include "pipeline/executor.hpp"

#include <algorithm>

namespace kedge::pipeline {

bool Backlog::has(const Id128& commit_id) const noexcept {
  return to_protect == commit_id ||
         std::ranges::any_of(jobs, [&](const Waiting& job) { return job.commit_id == commit_id; });
}

Ahead Backlog::ahead() const noexcept {
  Ahead ahead;
  for (const Waiting& job : jobs) {
    if (job.is_unsealed) ++ahead.seals;
    for (const Level level : job.due) {
      if (level == Level::protected_) ++ahead.protects;
      if (level == Level::persistent) ++ahead.flushes;
    }
  }
  return ahead;
}

}  // namespace kedge::pipeline
