// Differences between MPI libraries.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace kedge::comm {

/// Returns the MPI library's name and version in one line, e.g. "Open MPI v4.1.4".
[[nodiscard]] std::string mpi_library();

/// Whether the error is that a process failed, as libraries with fault tolerance report it.
[[nodiscard]] bool is_process_failure(int code);

/// Returns the ranks of `comm` that the library knows to have failed; none if it cannot tell.
[[nodiscard]] std::vector<int> failed_ranks(MPI_Comm comm);

/// Makes errors that MPI raises on MPI_COMM_WORLD be returned, for its own lifetime. MPICH raises those of a test or
/// wait there, whatever communicator the request is of, and would end the process, e.g. for a truncated message. Does
/// nothing with other libraries.
class ScopedMpiErrorsReturn {
 public:
  ScopedMpiErrorsReturn();
  ~ScopedMpiErrorsReturn();
  ScopedMpiErrorsReturn(const ScopedMpiErrorsReturn&) = delete;
  ScopedMpiErrorsReturn& operator=(const ScopedMpiErrorsReturn&) = delete;
};

}  // namespace kedge::comm
