// Engines that are destroyed after MPI_Finalize, as static or leaked ones are: harmless in any state. Exits with 0 if
// every rank came to its end. Usage: outlives_mpi DIRECTORY [funneled]
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace {

kedge::Options options_in(const std::string& directory, const std::string& run) {
  kedge::Options options;
  options.run = run;
  options.store.path = directory + "/store";
  options.persistent.path = directory + "/prefix";
  options.log.level = kedge::LogLevel::warning;
  if (run.starts_with("background")) {
    options.pipeline.mode = kedge::PipelineMode::background;
    options.persistent.every = 1;
  }
  return options;
}

int run(const std::string& directory) {
  const auto make = [&](const char* name) { return kedge::Engine(MPI_COMM_WORLD, options_in(directory, name)); };
  double value = 1;
  kedge::State state;
  state.add("value", value);

  std::optional<kedge::Engine> idle(make("idle"));
  idle->checkpoint("a", state);
  std::optional<kedge::Engine> writing(make("writing"));
  writing->create("a");
  writing->save("value", kedge::region(&value, {}));
  std::optional<kedge::Engine> reading(make("reading"));
  reading->checkpoint("a", state);
  if (reading->open() != "a") return 1;
  std::optional<kedge::Engine> finalized(make("finalized"));
  finalized->finalize();
  // Two with workers, one of which is in the middle of something.
  std::optional<kedge::Engine> background_idle(make("background-idle"));
  background_idle->checkpoint("a", state);
  background_idle->wait("a", kedge::Level::persistent);
  std::optional<kedge::Engine> background_busy(make("background-busy"));
  std::vector<double> large(std::size_t{4} << 20U, 1);
  kedge::State more;
  more.add("large", large);
  background_busy->checkpoint("a", more);
  background_busy->checkpoint("b", more);

  MPI_Finalize();
  // A local call, too, only says that it does not fit; nothing communicates any more.
  if (writing->save("..", {}).ok()) return 1;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int provided = 0;
  const bool funneled = argc > 2 && std::string(argv[2]) == "funneled";
  MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &provided);
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
