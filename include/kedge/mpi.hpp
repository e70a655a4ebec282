// Kedge over MPI. The only C++ header that includes a third-party one.
#pragma once

#if __cplusplus < 202002L
#error \
    "Kedge's headers are C++20: compile with -std=c++20 (CMake: kedge::kedge and kedge::core ask for it, but not in CUDA files)"
#endif

#include <mpi.h>

#include <functional>
#include <memory>

#include "kedge/communicator.hpp"
#include "kedge/mpi_family.h"

namespace kedge {
inline namespace KEDGE_MPI_FAMILY {  // a program and a Kedge of different MPI libraries do not link

/// A communicator over all ranks of `comm`, which may be a sub-communicator. Local and cheap: the private
/// duplicate is made by Communicator::connect, which the Engine's constructor calls. MPI must be initialized
/// and `comm` must stay valid until then. Throws Error{invalid_argument} for MPI_COMM_NULL or an
/// inter-communicator, Error{bad_state} before MPI_Init and after MPI_Finalize.
[[nodiscard]] std::unique_ptr<Communicator> mpi(MPI_Comm comm);

/// The frame of a program: initializes MPI (requests MPI_THREAD_MULTIPLE), runs `body`, finalizes MPI. It makes no
/// other collective call, so a launch may have other programs beside it. Returns main's exit code: 0; or, if `body`
/// threw on every rank of the launch, as Kedge's collective calls do, exit_status() of an Error, which says whether
/// another attempt may succeed, or 1 for other exceptions, and rank 0 has printed its what(). If only some ranks of the
/// launch throw, each of them waits 10 s for the others, prints what() and ends the job with that code. Programs that
/// handle errors themselves catch kedge::Error instead.
[[nodiscard]] int mpi_main(int argc, char** argv, const std::function<void()>& body);

}  // namespace KEDGE_MPI_FAMILY

/// Makes an Engine of an MPI communicator: `Engine engine(MPI_COMM_WORLD, options)`.
template <>
struct CommunicatorOf<MPI_Comm> {
  /// The communicator over all ranks of `comm`, as the function of this header makes it.
  [[nodiscard]] static std::unique_ptr<Communicator> make(MPI_Comm comm) { return mpi(comm); }
};

}  // namespace kedge
