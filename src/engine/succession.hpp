// Whether a start may go on from the one before it: it cannot where both are parts of one launch, or tasks of an array.
#pragma once

#include "engine/setup.hpp"
#include "kedge/communicator.hpp"
#include "persist/run_records.hpp"

namespace kedge::engine {

/// Local, rank 0. The launch that makes this start.
[[nodiscard]] persist::Starter starter_of(const Setup& setup, const Communicator& communicator);

/// Local, rank 0. Throws mismatch if what the start before left is another computation's, unless open.chained or
/// open.fresh say what to do with it.
void require_succession(const Setup& setup, const persist::RunRecords& records, const persist::Starter& starter);

/// Local, rank 0. A start outside of job arrays, by hand, leaves the run to the task that it belonged to.
void inherit(const persist::RunRecords& records, persist::Starter& starter);

/// Local, from any thread. The computation of this start has come to its end: a later engine of this process must not
/// continue it.
void note_finished(const Id128& start_id);

}  // namespace kedge::engine
