// Particles that move from rank to rank, in a job that survives being killed: a state that grows, shrinks and moves in
// memory. Kedge's part is marked with [kedge]; everything else is an ordinary MPI program.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "cloud.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace {

struct Arguments {
  std::uint64_t particles = 20000;
  std::uint64_t steps = 200;
  std::uint64_t every = 20;  ///< steps between checkpoints
  std::optional<std::uint64_t> die_at;
  int die_rank = -1;
  int die_node = -1;
};

constexpr const char* kHelp =
    "usage: mpirun -n RANKS particles [options]\n\n"
    "Particles in a flow move from rank to rank. The job survives being killed: start\n"
    "it again with the same command, and it resumes from its newest checkpoint.\n\n"
    "  --particles N    particles of the whole job (20000)\n"
    "  --steps N        steps to compute (200)\n"
    "  --every N        steps between checkpoints (20); 0 = none\n"
    "  --die-at STEP    at this step, to try a failure,\n"
    "  --die-rank R     kill rank R, or\n"
    "  --die-node K     kill the ranks of simulated node K\n"
    "                   (needs KEDGE_TEST_RANKS_PER_NODE)\n";

std::uint64_t number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text.front() == '-') {
    throw std::runtime_error(option + " requires a number, not '" + text + "'; see --help");
  }
  return value;
}

/// Nothing if help was asked for.
std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--help") return std::nullopt;
    const std::uint64_t value = number(option, i + 1 < argc ? argv[i + 1] : "");
    if (option == "--particles") arguments.particles = value;
    else if (option == "--steps") arguments.steps = value;
    else if (option == "--every") arguments.every = value;
    else if (option == "--die-at") arguments.die_at = value;
    else if (option == "--die-rank") arguments.die_rank = static_cast<int>(value);
    else if (option == "--die-node") arguments.die_node = static_cast<int>(value);
    else throw std::runtime_error("unknown option " + option + "; see --help");
  }
  return arguments;
}

int ranks_per_node() {
  const char* const simulated = std::getenv("KEDGE_TEST_RANKS_PER_NODE");
  return simulated == nullptr ? 0 : std::atoi(simulated);
}

void die_if_asked(const Arguments& arguments, std::uint64_t step, int rank, int ranks_per_node) {
  if (step != arguments.die_at) return;
  const int node = ranks_per_node == 0 ? 0 : rank / ranks_per_node;
  if (rank == arguments.die_rank || node == arguments.die_node) std::raise(SIGKILL);
}

void run(const Arguments& arguments) {
  particles::Cloud cloud(MPI_COMM_WORLD, arguments.particles);
  std::uint64_t step = 0;
  const auto report = [&](const char* what) {
    const std::uint64_t checksum = cloud.checksum();
    if (cloud.rank() != 0) return;
    std::ostringstream line;  // written at once: some MPI launchers mix what ranks write in pieces
    line << what << ' ' << step << " checksum " << std::hex << std::setw(16) << std::setfill('0') << checksum << '\n';
    std::cout << line.str() << std::flush;
  };

  // [kedge] The state is the particles, wherever they are in memory, and the step. In the
  // checkpoint the particles of all ranks form one array; each rank gives the offset of its part.
  kedge::Options options = kedge::Options::load();
  options.schedule.every = arguments.every;
  options.schedule.seconds = options.schedule.overhead = 0;
  options.fingerprint = "particles, " + std::to_string(arguments.particles);
  kedge::Engine engine(MPI_COMM_WORLD, options);
  std::uint64_t before = 0;
  kedge::State state;
  state.add("particles", cloud.mine(), [&] { return kedge::Shard{{cloud.total()}, {before}}; });
  state.add("step", step, kedge::Replicated{});
  if (engine.restore(state)) report("resumed");

  while (step < arguments.steps) {
    die_if_asked(arguments, step, cloud.rank(), ranks_per_node());
    cloud.advance(step);
    ++step;
    if (engine.need_checkpoint()) {  // [kedge]
      before = cloud.count_before();
      engine.checkpoint("step-" + std::to_string(step), state);
      report("step");
    }
  }
  engine.finalize();  // [kedge]
  report("end");
}

}  // namespace

int main(int argc, char** argv) {
  // [kedge] Initializes MPI; if all ranks throw, rank 0 prints its error.
  return kedge::mpi_main(argc, argv, [&] {
    if (const auto arguments = parse(argc, argv)) return run(*arguments);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cout << kHelp;
  });
}
