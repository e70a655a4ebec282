// Counts its starts; each continues from the one before.
#include <iostream>
#include <string>

#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

int main(int argc, char** argv) {
  return kedge::mpi_main(argc, argv, [] {
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    int step = 0;
    kedge::State state;
    state.add("step", step);
    engine.restore(state);
    std::cout << "begins at step " << step << std::endl;
    ++step;
    engine.checkpoint("step-" + std::to_string(step), state);
    engine.finalize();
  });
}
