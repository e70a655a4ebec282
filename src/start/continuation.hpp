// Whether a start may go on from the one before it: it cannot where both are parts of one launch, or tasks of an array.
#pragma once

#include "kedge/communicator.hpp"
#include "persist/run_start.hpp"
#include "start/environment.hpp"

namespace kedge::start {

/// Local, rank 0. The launch that makes this start.
[[nodiscard]] persist::LaunchInfo launch_info_of(const Environment& environment, const Communicator& communicator);

/// Local, rank 0; not for a drain. Throws mismatch if what the start before left is another computation's, unless
/// open.chained or start = fresh say what to do with it.
void require_may_continue(const Options& options, const persist::RunStart& start,
                          const persist::LaunchInfo& launch_info);

/// Local, rank 0. A start outside of job arrays, by hand, leaves the run to the task that it belonged to.
void inherit_array_task(const persist::RunStart& start, persist::LaunchInfo& launch_info);

/// Local, from any thread. The computation of this start has come to its end: a later engine of this process must not
/// continue it.
void mark_finished(const Id128& start_id);

}  // namespace kedge::start
