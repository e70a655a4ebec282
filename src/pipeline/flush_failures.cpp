#include "pipeline/flush_failures.hpp"

#include <utility>

#include "base/text.hpp"

namespace kedge::pipeline {

bool is_transient(const Failure& failure) {
  return failure.code == ErrorCode::no_space || failure.code == ErrorCode::io;
}

bool FlushFailures::should_log(const Failure& failure) {
  if (!is_transient(failure)) return true;
  const std::lock_guard guard(mutex_);
  // A full filesystem may be found before or during writing, with different errno: treat both alike.
  const State now{failure.code, failure.code == ErrorCode::no_space ? 0 : failure.system_errno};
  return std::exchange(out_of_order_, now) != now;
}

std::optional<std::string> FlushFailures::on_success(const CommitHead& commit) {
  const std::lock_guard guard(mutex_);
  if (!std::exchange(out_of_order_, std::nullopt)) return std::nullopt;
  return compose("flushes to the prefix succeed again, starting with {}", commit.tag);
}

}  // namespace kedge::pipeline
