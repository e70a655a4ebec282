// What programs do in mpi_main. Usage: frame fine | all | option | own | one | one-busy | half | half-throws | world
#include <cstdio>
#include <stdexcept>
#include <string>

#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  return kedge::mpi_main(argc, argv, [&] {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kedge::Options options;
    if (mode.starts_with("half") || mode == "world") {  // of a launch with another program
      MPI_Comm own = MPI_COMM_NULL;
      MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &own);
      MPI_Comm_set_name(own, "half");
      options.comm.timeout_s = 3;
      const std::string directory = argc > 2 ? argv[2] : ".";
      options.store.path = mode == "half-throws" ? "/dev/null/store" : directory + "/store";
      options.persistent.path = directory + "/prefix";
      kedge::Engine engine(kedge::mpi(mode == "world" ? MPI_COMM_WORLD : own), options);
      kedge::State state;
      int step = 1;
      state.add("step", step);
      engine.checkpoint("a", state);
      engine.finalize();
      if (rank == 0) std::puts("came to its end");
      return;
    }
    if (mode == "all") options.store.path = "/dev/null/store";
    if (mode == "all") kedge::Engine engine(MPI_COMM_WORLD, options);
    if (mode == "option") options.redundancy.set_size = 1;
    if (mode == "option") kedge::Engine engine(MPI_COMM_WORLD, options);
    if (mode == "own") throw std::runtime_error("my own");
    if (mode == "one-busy" && rank == 1) throw kedge::Error(kedge::ErrorCode::mismatch, "only here");
    if (mode == "one" && rank == 1) throw std::runtime_error("only here");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::puts("came to its end");
  });
}
