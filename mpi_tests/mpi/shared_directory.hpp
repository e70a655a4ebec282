// A directory of its own for a test that all ranks run.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <string>

namespace kedge {

/// COLLECTIVE. Rank 0 makes it below `parent`; empty, on all ranks, if it cannot. The test removes it.
inline std::string make_shared_directory(const std::string& parent) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::array<char, 256> path{};
  (parent + "/kedge-test-XXXXXX").copy(path.data(), path.size() - 1);
  if (rank == 0 && ::mkdtemp(path.data()) == nullptr) path.front() = '\0';
  MPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  return path.data();
}

}  // namespace kedge
