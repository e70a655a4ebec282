// Ranks of a job whose others are C and Fortran: see languages_test.py.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

int main(int argc, char** argv) {
  return kedge::mpi_main(argc, argv, [] {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    int step = 0;
    std::vector<double> field(1);
    kedge::State state;
    state.add("step", step).add("field", field);
    const bool found = engine.restore(state).has_value();
    const std::vector<double> expected(1000 * static_cast<std::size_t>(rank + 1), step + rank);
    std::printf("rank %d: step %d%s\n", rank, step, found && field == expected ? ", good" : ", none");
    for (int turn = 0; turn < 2; ++turn) {
      ++step;
      field.assign(expected.size(), step + rank);
      engine.checkpoint("step-" + std::to_string(step), state);
    }
    engine.finalize();
  });
}
