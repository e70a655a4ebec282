// A checkpoint that does not fit is refused on all ranks, and the program goes on to its end.
#include <kedge/kedge.hpp>
#include <kedge/mpi.hpp>

#include <iostream>

int main(int argc, char** argv) {
  int failed = 0;
  const int status = kedge::mpi_main(argc, argv, [&failed] {
    int rank = 0, step = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kedge::Options options = kedge::Options::load();
    options.store.quota_bytes = 1U << 20U;
    options.log.sink = [](kedge::LogLevel, std::string_view) {};
    std::vector<double> data(1U << 20U);
    kedge::Engine engine(MPI_COMM_WORLD, options);
    kedge::State state;
    state.add("data", data);
    // [example]
    failed = engine.level("step-1") == kedge::Level::none ? 0 : 1;
    engine.finalize();
  });
  return status != 0 ? status : failed;
}
