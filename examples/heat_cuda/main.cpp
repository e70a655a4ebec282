// Heat spreads over a plate in the memory of GPUs, in a job that survives being killed: checkpoints are written
// straight from GPU memory, and loaded straight into it. Kedge's part is marked with [kedge]; everything else is an
// ordinary program with CUDA, and with MPI if Kedge has it (job.hpp). heat2d is the same on CPUs.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "gpu.hpp"
#include "job.hpp"
#include "kedge/kedge.hpp"
#include "plate.hpp"

namespace {

constexpr int kNoGpu = 77;  // what ctest and others take for "skipped"

std::string tag_of(std::uint64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%06llu", static_cast<unsigned long long>(step));
  return text;
}

/// Written at once: some MPI launchers mix what ranks write in pieces.
void print(const heat_cuda::Place& place, const std::string& lines) {
  if (place.rank == 0) std::cout << lines << std::flush;
}

void die_if_asked(const heat_cuda::Arguments& arguments, std::uint64_t step, int rank) {
  if (step == arguments.die_at && arguments.die_rank == static_cast<std::uint64_t>(rank)) std::raise(SIGKILL);
}

/// COLLECTIVE. FNV-1a over the bytes of all ranks' rows, 16 hex digits: equal only if every bit of the field is.
std::string checksum(const heat_cuda::Place& place, const heat_cuda::Plate& plate) {
  const std::vector<double> rows = plate.on_host();
  const std::uint64_t hash = heat_cuda::in_turn(place, 0xcbf29ce484222325U, [&](std::uint64_t so_far) {
    for (const std::byte byte : std::as_bytes(std::span(rows))) {
      so_far = (so_far ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    }
    return so_far;
  });
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

void run(const heat_cuda::Arguments& arguments, const heat_cuda::Place& place) {
  print(place, "GPU " + heat_cuda::use_gpu(place.local_rank) + '\n');
  heat_cuda::Plate plate(place, arguments.height, arguments.width);
  std::uint64_t step = 0;

  kedge::Options options = kedge::Options::load();  // [kedge]
  options.schedule.every = arguments.every;
  options.schedule.seconds = options.schedule.overhead = 0;  // --every 0: none
  // A plate of another size must not resume from this one.
  options.fingerprint = "heat_cuda, " + std::to_string(arguments.width) + " x " + std::to_string(arguments.height);
  kedge::Engine engine(heat_cuda::communicator(), options);
  // [kedge] The state is the plate, a block of rows of one global array, and the step. Kedge sees that the address is
  // GPU memory, and with the stream waits for the steps that it was given, and for nothing else. A step moves the field
  // to another address: the function says where it is.
  const auto field = [&] {
    kedge::MutableRegion now = kedge::mutable_region(plate.data(), {plate.rows(), plate.columns()});
    now.stream = kedge::DeviceStream{plate.stream()};
    return now;
  };
  kedge::State state;
  state.add("temperature", field, kedge::Shard{{arguments.height, arguments.width}, {plate.first_row(), 0}});
  state.add("step", step, kedge::Replicated{});
  if (const auto tag = engine.restore(state)) {  // [kedge] into GPU memory, complete when it returns
    print(place, "resumed " + *tag + ' ' + std::to_string(step) + '\n');
  }

  std::uint64_t computed = 0;
  while (step < arguments.steps) {
    die_if_asked(arguments, step, place.rank);
    plate.advance();
    ++step;
    ++computed;
    // [kedge] The next step may change the field as soon as checkpoint returns.
    if (engine.need_checkpoint()) {
      engine.checkpoint(tag_of(step), state, {{"program", "heat_cuda"}, {"step", static_cast<std::int64_t>(step)}});
    }
    if (engine.should_exit()) break;  // [kedge] a signal came, or the deadline is near
  }
  engine.finalize();  // [kedge] before the GPU's memory and the stream are freed

  std::ostringstream lines;
  if (step < arguments.steps) {
    lines << "stopped after " << step << " of " << arguments.steps << " steps; run the same command to continue\n";
  }
  lines << "steps computed " << computed << '\n' << "checksum " << checksum(place, plate) << '\n';
  print(place, lines.str());
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  const int framed = heat_cuda::run_job(argc, argv, [&] {
    const heat_cuda::Place place = heat_cuda::place();
    const auto arguments = heat_cuda::parse(argc, argv);
    if (!arguments) return print(place, heat_cuda::kHelp);
    if (const std::string why = heat_cuda::first_of_all(place, heat_cuda::why_no_gpu()); !why.empty()) {
      exit_code = kNoGpu;
      return print(place,
                   "no GPU: " + why + "; run heat_cuda where there is an NVIDIA GPU, or heat2d, which needs none\n");
    }
    run(*arguments, place);
  });
  return framed != 0 ? framed : exit_code;
}
