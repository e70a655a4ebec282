// The error of a wait for other ranks that did not come.
#pragma once

#include <string_view>

#include "base/text.hpp"
#include "base/units.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// A rank that was stopped itself does not blame others, which may have given up on it.
[[nodiscard]] inline Error timeout_error(int rank, std::string_view whom, Deadline deadline) {
  if (const double stopped_s = deadline.stopped_s(); stopped_s > 0) {
    return {ErrorCode::timeout,
            compose("rank {} timed out waiting for {}, and did not run itself for {} of that time, so that the others "
                    "may have given up on it; check what stops this job's processes",
                    rank, whom, human_seconds(stopped_s))};
  }
  return {ErrorCode::timeout, compose("rank {} timed out waiting for {}; check what delays it", rank, whom)};
}

}  // namespace kedge::comm
