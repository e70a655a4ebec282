// Heat spreads over a plate: an explicit 2-D solver on a grid of MPI ranks that survives being killed.
// Kedge's part is marked with [kedge]; everything else is an ordinary MPI program.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"
#include "picture.hpp"
#include "plate.hpp"

namespace {

std::string tag_of(std::uint64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%06llu", static_cast<unsigned long long>(step));
  return text;
}

int ranks_per_node() {
  const char* const simulated = std::getenv("KEDGE_TEST_RANKS_PER_NODE");
  return simulated == nullptr ? 0 : std::atoi(simulated);
}

void die_if_asked(const heat2d::Arguments& arguments, std::uint64_t step, int rank, int ranks_per_node) {
  if (!arguments.die_at || step != *arguments.die_at) return;
  const int node = ranks_per_node == 0 ? 0 : rank / ranks_per_node;
  if (rank == arguments.die_rank || node == arguments.die_node) std::raise(SIGKILL);
}

/// COLLECTIVE. A picture that one rank cannot read ends the job on all, with that rank's message.
heat2d::Picture load_picture_everywhere(const std::string& path) {
  heat2d::Picture picture;
  std::string problem;
  try {
    picture = heat2d::load_picture(path);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int failed = problem.empty() ? ranks : rank;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (failed == ranks) return picture;
  std::array<char, 512> text{};
  problem.copy(text.data(), text.size() - 1);
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, failed, MPI_COMM_WORLD);
  throw std::runtime_error("on rank " + std::to_string(failed) + ": " + text.data());
}

/// [kedge] COLLECTIVE. Where the newest checkpoint of this run ended; if it has none yet, where that of `from` did.
std::optional<kedge::Tag> restore(kedge::Engine& engine, const kedge::State& state, const std::string& from) {
  if (auto tag = engine.restore(state); tag || from.empty()) return tag;
  return engine.restore(state, kedge::Source{from, "", "latest"});
}

void run(const heat2d::Arguments& arguments) {
  const heat2d::Picture picture = load_picture_everywhere(arguments.picture);
  heat2d::Plate plate(MPI_COMM_WORLD, picture);
  std::uint64_t step = 0;

  // [kedge] The state is the plate and the step.
  kedge::Options options = kedge::Options::load();
  options.schedule.every = arguments.every;
  options.schedule.seconds = options.schedule.overhead = 0;  // --every 0: none
  // Another picture must not resume from this plate.
  options.fingerprint = "heat2d";
  if (arguments.picture.empty()) options.fingerprint += ", built-in picture";
  else options.fingerprint_files = {arguments.picture};
  kedge::Engine engine(MPI_COMM_WORLD, options);
  kedge::State state;
  state.add("temperature", kedge::mutable_region(plate.data(), {plate.rows(), plate.columns()}),
            kedge::Shard{{picture.height, picture.width}, {plate.first_row(), plate.first_column()}});
  state.add("step", step, kedge::Replicated{});
  if (const auto tag = restore(engine, state, arguments.from); tag && plate.rank() == 0) {
    const kedge::CheckpointInfo info = engine.info();
    std::ostringstream line;  // written at once: some MPI launchers mix what ranks write in pieces
    line << "resumed " << *tag << ' ' << step << ' ' << to_string(info.source) << ' ' << info.total_bytes << '\n';
    std::cout << line.str() << std::flush;
  }

  std::uint64_t computed = 0;
  while (step < arguments.steps) {
    die_if_asked(arguments, step, plate.rank(), ranks_per_node());
    plate.advance();
    ++step;
    ++computed;
    if (engine.need_checkpoint()) {  // [kedge]
      engine.checkpoint(tag_of(step), state, {{"program", "heat2d"}, {"step", static_cast<std::int64_t>(step)}});
    }
    if (engine.should_exit()) break;  // [kedge] a signal came, or the deadline is near
  }
  engine.finalize();  // [kedge]

  const std::vector<double> field = plate.gather();
  if (plate.rank() != 0) return;
  if (step < arguments.steps) {
    std::ostringstream line;
    line << "stopped " << step << " of " << arguments.steps << " steps are done; start it again to go on\n";
    std::cout << line.str() << std::flush;
  } else if (!arguments.output.empty()) heat2d::save_picture(arguments.output, field, picture.width, picture.height);
  std::ostringstream lines;
  lines << "steps computed " << computed << '\n' << "checksum " << heat2d::checksum(field) << '\n';
  std::cout << lines.str() << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  // [kedge] Initializes MPI; if all ranks throw, rank 0 prints its error.
  return kedge::mpi_main(argc, argv, [&] {
    if (const auto arguments = heat2d::parse(argc, argv)) return run(*arguments);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cout << heat2d::kHelp;
  });
}
