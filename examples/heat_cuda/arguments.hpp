// heat_cuda's command line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace heat_cuda {

struct Arguments {
  std::uint64_t width = 512;
  std::uint64_t height = 384;
  std::uint64_t steps = 200;
  std::uint64_t every = 20;  ///< steps between checkpoints; 0 is never
  std::optional<std::uint64_t> die_at;
  std::uint64_t die_rank = 0;
};

inline constexpr std::uint64_t kLongestSide = 500000;  ///< a grid of blocks has no more rows

inline constexpr const char* kHelp =
    "usage: [mpirun -n RANKS] heat_cuda [options]\n\n"
    "Heat spreads over a plate in GPU memory. The job survives being killed: start it again with the same command, "
    "and\n"
    "it resumes from its newest checkpoint. Each rank uses one GPU of its node; several ranks may share one.\n\n"
    "  --width N        columns of the plate (512)\n"
    "  --height N       rows of the plate (384), divided among the ranks\n"
    "  --steps N        steps to compute (200)\n"
    "  --every N        steps between checkpoints (20); 0 = none\n"
    "  --die-at STEP    kill a rank at this step, to simulate a failure\n"
    "  --die-rank R     which rank to kill (0)\n\n"
    "Every tenth checkpoint is flushed to ./checkpoints: list them with `kedge ls`. KEDGE_PERSISTENT_EVERY=1 flushes "
    "all.\n"
    "Exits with 77 where there is no GPU.\n";

inline std::uint64_t number(const std::string& option, const std::string& text, std::uint64_t least = 0,
                            std::uint64_t most = UINT64_MAX) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text.front() == '-') {
    throw std::runtime_error(option + " requires a number, not '" + text + "'; see --help");
  }
  if (value < least || value > most) {
    throw std::runtime_error(option + " must be " + std::to_string(least) + " to " + std::to_string(most) + ", not " +
                             text);
  }
  return value;
}

/// Nothing if help was asked for.
inline std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--help") return std::nullopt;
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--width") arguments.width = number(option, value, 1, kLongestSide);
    else if (option == "--height") arguments.height = number(option, value, 1, kLongestSide);
    else if (option == "--steps") arguments.steps = number(option, value);
    else if (option == "--every") arguments.every = number(option, value);
    else if (option == "--die-at") arguments.die_at = number(option, value);
    else if (option == "--die-rank") arguments.die_rank = number(option, value);
    else throw std::runtime_error("unknown option " + option + "; see --help");
  }
  return arguments;
}

}  // namespace heat_cuda
