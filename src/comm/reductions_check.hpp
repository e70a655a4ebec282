// Whether a communicator reduces as the interface says: everything that ranks decide together rests on it.
#pragma once

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// COLLECTIVE, in six small reductions. Throws Error{invalid_argument} on all ranks, naming the library, the reduction
/// and a rank, if one gave any rank another result than it should. Some MPI libraries compare unsigned numbers as
/// signed ones (pmodels/mpich 6083): votes would then lose failures. The verdict goes through messages from rank to
/// rank alone.
void require_correct_reductions(Communicator& communicator, Deadline deadline);

}  // namespace kedge::comm
