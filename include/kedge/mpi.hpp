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

/// Local, cheap. A communicator over all ranks of `comm`, which may be a sub-communicator. The Engine's constructor
/// makes the private duplicate (Communicator::connect), so MPI must be initialized and `comm` valid until then. Throws
/// Error{invalid_argument} for MPI_COMM_NULL or an inter-communicator, Error{bad_state} before MPI_Init and after
/// MPI_Finalize.
[[nodiscard]] std::unique_ptr<Communicator> mpi(MPI_Comm comm);

/// Runs a whole program: initializes MPI (with MPI_THREAD_MULTIPLE), runs `body`, finalizes MPI. Makes no other
/// collective call, so a launch may contain other programs. Returns main's exit code: 0 on success. If `body` threw on
/// every rank of the launch, as Kedge's collective calls do, rank 0 prints what(), and the code is exit_status() of an
/// Error, or 1 for other exceptions. If only some ranks throw, each waits 10 s for the others, prints what() and ends
/// the job with that code. Programs that handle errors themselves catch kedge::Error instead.
[[nodiscard]] int mpi_main(int argc, char** argv, const std::function<void()>& body);

}  // namespace KEDGE_MPI_FAMILY

/// Lets an Engine be made of an MPI communicator: `Engine engine(MPI_COMM_WORLD, options)`.
template <>
struct CommunicatorOf<MPI_Comm> {
  /// As kedge::mpi.
  [[nodiscard]] static std::unique_ptr<Communicator> make(MPI_Comm comm) { return mpi(comm); }
};

}  // namespace kedge
