// An application whose own library writes by parallel HDF5, and that takes checkpoints with Kedge.
#include <mpi.h>

#include <cstdio>
#include <kedge/kedge.hpp>
#include <kedge/mpi.hpp>

#include "own_library.h"

int main(int argc, char** argv) {
  return kedge::mpi_main(argc, argv, [] {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int step = 0;
    const auto write_own = [&] {
      if (own_write("own.h5", step + rank) != 0) throw std::runtime_error("parallel HDF5 failed");
    };
    write_own();
    kedge::State state;
    state.add("step", step);
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    engine.restore(state);
    write_own();
    ++step;
    engine.checkpoint("step-" + std::to_string(step), state);
    write_own();
    engine.finalize();
    write_own();
    if (rank == 0) std::printf("both are well after step %d\n", step);
  });
}
