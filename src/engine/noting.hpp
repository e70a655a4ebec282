// What a start notes on the prefix before it begins, and what it says where the prefix is full.
#pragma once

#include <cerrno>
#include <utility>

#include "kedge/error.hpp"

namespace kedge::engine {

/// Local. Runs a step that writes what a start has to note. A few bytes that are not there keep a job from all that its
/// stores have: it says so, and what to do.
template <class Step>
auto noting(Step&& step) {
  try {
    return std::forward<Step>(step)();
  } catch (const Error& error) {
    Failure failure = error.failure();
    const bool is_limit = failure.system_errno == EFBIG;  // ulimit -f: there may be all the space in the world
    if (failure.code == ErrorCode::no_space && !failure.path.empty() && !is_limit) {
      failure.message =
          "no space left on the parallel filesystem, where every start and kedge drain make a note first: free some "
          "there or raise the quota, then start again, or drain again; the checkpoints in the node-local stores stay";
    }
    throw Error(std::move(failure));
  }
}

}  // namespace kedge::engine
