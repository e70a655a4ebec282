// Limits log lines about failing flushes: one when failures begin, one when they end.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// Pure. Whether a later flush may succeed: a full filesystem, a server's error.
[[nodiscard]] bool is_transient(const Failure& failure);

/// Thread-safe, per rank. Failures of one commit alone are always news.
class FlushFailures {
 public:
  /// Whether this failure must be logged; false if it was already logged, for this commit or an earlier one.
  [[nodiscard]] bool should_log(const Failure& failure);
  /// A flush succeeded. Returns the line to log if earlier ones failed.
  [[nodiscard]] std::optional<std::string> on_success(const CommitHead& commit);

 private:
  struct State {
    ErrorCode code = ErrorCode::io;
    int system_errno = 0;
    bool operator==(const State&) const = default;
  };

  std::mutex mutex_;
  std::optional<State> out_of_order_;
};

}  // namespace kedge::pipeline
