#include <mpi.h>

#include <cstdio>
#include <kedge/kedge.hpp>
#include <kedge/mpi.hpp>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  {
    int step = 0;
    kedge::State state;
    state.add("step", step);
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    const auto tag = engine.restore(state);
    ++step;
    engine.checkpoint("step-" + std::to_string(step), state);
    std::printf("was %s, is %d\n", tag ? tag->c_str() : "none", step);
    engine.finalize();
  }
  MPI_Finalize();
}
