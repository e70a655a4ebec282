// The guide's test of a program's own code: the second start must find a step of the first.
#include <kedge/kedge.hpp>
#include <kedge/testing/in_process_job.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace {
void simulate(kedge::Engine& engine, kedge::Communicator&) {
  int step = 0;
  kedge::State state;
  state.add("step", step);
  engine.restore(state);
  for (int i = 0; i < 10; ++i) {
    ++step;
    engine.checkpoint("step-" + std::to_string(step), state);
  }
  engine.finalize();
}
}  // namespace

int main() {
  const std::string here = std::filesystem::current_path();
  kedge::Options options;
  options.store.path = here + "/{node}";
  options.persistent.path = here + "/prefix";
  ::setenv("KEDGE_TEST_RANKS_PER_NODE", "1", 1);
  options.log.level = kedge::LogLevel::error;
  // [example]
  return job.events().size() == 4 ? 0 : 1;
}
