// Kedge over MPI. The only C++ header that includes a third-party one.
#pragma once

#include <mpi.h>

#include <memory>

#include "kedge/communicator.hpp"

namespace kedge {

/// A communicator over all ranks of `comm`, which may be a sub-communicator. Local and cheap: the private
/// duplicate is made by Communicator::connect, which the Engine's constructor calls. MPI must be initialized
/// and `comm` must stay valid until then. Throws Error{invalid_argument} for MPI_COMM_NULL or an
/// inter-communicator, Error{bad_state} before MPI_Init and after MPI_Finalize.
[[nodiscard]] std::unique_ptr<Communicator> mpi(MPI_Comm comm);

}  // namespace kedge
