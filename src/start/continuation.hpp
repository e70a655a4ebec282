// Whether a start may go on from the one before it: it may not if both are parts of one launch, or tasks of an array.
#pragma once

#include "kedge/communicator.hpp"
#include "persist/run_start.hpp"
#include "start/environment.hpp"

namespace kedge::start {

/// Returns the launch that makes this start. Local, rank 0.
[[nodiscard]] persist::LaunchInfo launch_info_of(const Environment& environment, const Communicator& communicator);

/// Throws mismatch if the previous start belongs to another computation, unless open.chained or start = fresh say what
/// to do with what it left. Local, rank 0; not for a drain.
void require_may_continue(const Options& options, const persist::RunStart& start,
                          const persist::LaunchInfo& launch_info);

/// Gives a start that was made by hand, outside of job arrays, the array task of the previous start. Local, rank 0.
void inherit_array_task(const persist::RunStart& start, persist::LaunchInfo& launch_info);

/// Marks that the computation of this start has ended: a later engine of this process must not continue it. Local, from
/// any thread.
void mark_finished(const Id128& start_id);

}  // namespace kedge::start
