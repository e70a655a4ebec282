#include "team.hpp"

#include <chrono>
#include <exception>
#include <string>
#include <thread>

#include "timing.hpp"

namespace kedge_bench {
namespace {

/// COLLECTIVE over all ranks. Who waits sleeps: a spinning rank would take a core from those that it waits for.
void sleepy_barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Team::Team(int size) : size_(size) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &communicator_);
}

Team::~Team() {
  if (has_me()) MPI_Comm_free(&communicator_);
}

double Team::time(const std::function<void()>& work) const {
  sleepy_barrier();
  double spent_s = 0;
  std::string failure;
  if (has_me()) {
    MPI_Barrier(communicator_);
    const double begin_s = MPI_Wtime();
    try {
      work();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    spent_s = MPI_Wtime() - begin_s;
  }
  sleepy_barrier();
  agree(failure);
  return most(spent_s);
}

}  // namespace kedge_bench
