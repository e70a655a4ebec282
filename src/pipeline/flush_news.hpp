// What the log says of flushes while the prefix is out of order: one line when that begins, one when it is over.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// Pure. Whether the next flush may not meet it again: a full filesystem, an error of a server.
[[nodiscard]] bool may_pass(const Failure& failure);

/// Of one rank; every member may be called from any thread. What is wrong with one commit alone is always news.
class FlushNews {
 public:
  /// A flush failed, and that is about to be said. False if it was said already, of this commit or an earlier one.
  [[nodiscard]] bool is_news(const Failure& failure);
  /// A flush succeeded: the line that says so if some failed before.
  [[nodiscard]] std::optional<std::string> succeeded(const CommitHead& commit);

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
