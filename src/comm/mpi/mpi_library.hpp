// Differences between MPI libraries.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace kedge::comm {

/// Local. The MPI library's name and version as it gives them, in one line, e.g. "Open MPI v4.1.4".
[[nodiscard]] std::string mpi_library();

/// Local. The error is that a process failed, as libraries with fault tolerance report it.
[[nodiscard]] bool is_process_failure(int code);

/// Local. The ranks of `comm` that the library knows to have failed; none if it cannot tell.
[[nodiscard]] std::vector<int> failed_ranks(MPI_Comm comm);

/// While one of these lives, errors that MPI raises on MPI_COMM_WORLD are returned. Those of a test or wait belong
/// there in MPICH, whatever communicator the request is of, and would end the process (a truncated message does so).
/// With other libraries this does nothing.
class ErrorsReturn {
 public:
  ErrorsReturn();
  ~ErrorsReturn();
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;
};

}  // namespace kedge::comm
