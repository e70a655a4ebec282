// The ranks of the job. job_mpi.cpp has them by MPI; job_single.cpp is for a Kedge without MPI, and a job of one
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kedge/communicator.hpp"

namespace heat_cuda {

/// COLLECTIVE. The frame of the program: runs `body`, prints its error. Returns main's exit code.
[[nodiscard]] int run_job(int argc, char** argv, const std::function<void()>& body);

/// [kedge] What an engine over all ranks is made of.
[[nodiscard]] std::unique_ptr<kedge::Communicator> communicator();

/// Where this rank is.
struct Place {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;  ///< among the ranks of its node
};
/// COLLECTIVE.
[[nodiscard]] Place place();

/// COLLECTIVE. The text of the lowest rank that has one, and which that is; empty if none has.
[[nodiscard]] std::string first_of_all(const Place& place, const std::string& text);

/// COLLECTIVE. Sends the first row to the rank above and the last one to the rank below, and receives theirs; leaves
/// `above` or `below` as it is where there is none. All in host memory.
void exchange_rows(const Place& place, std::size_t columns, const double* first, const double* last, double* above,
                   double* below);

/// COLLECTIVE. Each rank in turn continues from what the one before returned; all ranks get the last result.
[[nodiscard]] std::uint64_t in_turn(const Place& place, std::uint64_t begin,
                                    const std::function<std::uint64_t(std::uint64_t)>& next);

}  // namespace heat_cuda
