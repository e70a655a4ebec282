// The error of a start that cannot write its records on a full prefix.
#pragma once

#include <cerrno>
#include <utility>

#include "kedge/error.hpp"

namespace kedge::start {

/// Runs a step that writes a start's records, and explains no_space: the job is cut off from its stores by a few
/// missing bytes. Local.
template <class Step>
auto with_full_prefix_advice(Step&& step) {
  try {
    return std::forward<Step>(step)();
  } catch (const Error& error) {
    Failure failure = error.failure();
    const bool is_limit = failure.system_errno == EFBIG;  // ulimit -f: there may be all the space in the world
    if (failure.code == ErrorCode::no_space && !failure.path.empty() && !is_limit) {
      failure.message =
          "no space left on the parallel filesystem, where every start, and kedge drain, first writes a small record: "
          "free some space there or raise the quota, then try again; the checkpoints in the node-local stores are kept";
    }
    throw Error(std::move(failure));
  }
}

}  // namespace kedge::start
