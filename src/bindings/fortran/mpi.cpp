// The module's calls that need MPI: making an engine, and ending a program that does not pass `stat`.
#include <chrono>
#include <cstdio>
#include <thread>

#include "kedge/kedge_mpi.h"

namespace {

/// If all ranks have the same message, only rank 0 prints it; the others wait this long for it to end the job.
constexpr std::chrono::seconds kOthersWait{3};

/// MPICH's launcher drops output that it has not forwarded when the job aborts: messages were lost entirely.
constexpr std::chrono::milliseconds kForwarded{500};

}  // namespace

extern "C" {

/// kedge_engine_new_f under a name that does not depend on the MPI.
kedge_error kedge_fortran_engine_new(MPI_Fint comm, const kedge_options* options, kedge_engine** engine) {
  return kedge_engine_new_f(comm, options, engine);
}

/// Local. Prints the message and ends all ranks with MPI_Abort; returns only if MPI cannot do that.
void kedge_fortran_end_program(const char* text, int on_all_ranks) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  const bool with_mpi = initialized != 0 && finalized == 0;
  int rank = 0;
  if (with_mpi) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (on_all_ranks != 0 && rank != 0) std::this_thread::sleep_for(kOthersWait);
  std::fprintf(stderr, "kedge: %s\n", text);
  std::fflush(stderr);
  if (!with_mpi) return;
  std::this_thread::sleep_for(kForwarded);
  // A failure outside of Kedge leaves no code.
  const int status = kedge_exit_status(kedge_last_failure()->code);
  MPI_Abort(MPI_COMM_WORLD, status != 0 ? status : 1);
}

}  // extern "C"
