// Checks a communicator's reductions, on which all decisions of ranks depend.
#pragma once

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// COLLECTIVE, in six small reductions. Throws Error{invalid_argument} on all ranks, naming the library, the reduction
/// and a rank, if one gave any rank a wrong result. Some MPI libraries compare unsigned numbers as signed ones
/// (pmodels/mpich 6083): votes would then lose failures. The verdict itself is exchanged by messages from rank to rank.
void require_correct_reductions(Communicator& communicator, Deadline deadline);

}  // namespace kedge::comm
