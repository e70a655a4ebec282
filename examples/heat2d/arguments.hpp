// heat2d's command line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace heat2d {

struct Arguments {
  std::string picture;  ///< PGM; empty: built in
  std::string output;   ///< PGM of the final field; empty: none
  std::string from;     ///< prefix of another run to begin with; empty: begin with the picture
  std::uint64_t steps = 200;
  std::uint64_t every = 20;  ///< steps between checkpoints; 0 is never
  std::optional<std::uint64_t> die_at;
  int die_node = -1;
  int die_rank = -1;
};

inline std::uint64_t number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text.front() == '-') {
    throw std::runtime_error(option + " requires a number, not '" + text + "'; see --help");
  }
  return value;
}

inline constexpr const char* kHelp =
    "usage: mpirun -n RANKS heat2d [PICTURE.pgm] [options]\n\n"
    "Heat spreads over a picture (a built-in one if none is given). The job survives being killed: start it again "
    "with\n"
    "the same command, and it resumes from its newest checkpoint.\n\n"
    "  --steps N        steps to compute (200)\n"
    "  --every N        steps between checkpoints (20); 0 = none\n"
    "  --output FILE    picture (PGM) of the final field\n"
    "  --from PREFIX    start from another run's newest checkpoint in this directory, if this run has none yet\n"
    "  --die-at STEP    kill ranks at this step, to try a failure:\n"
    "  --die-node K     those of this simulated node (needs KEDGE_TEST_RANKS_PER_NODE),\n"
    "  --die-rank R     or this one\n\n"
    "Every tenth checkpoint is flushed to ./checkpoints: list them with `kedge ls`. KEDGE_PERSISTENT_EVERY=1 flushes "
    "all;\n"
    "with KEDGE_EXIT_SIGNALS=SIGTERM a signal ends the job after a last checkpoint, and with KEDGE_DEADLINE the time "
    "does.\n"
    "KEDGE_PERSISTENT_PATH and KEDGE_STORE_PATH set the directories; share/kedge/kedge.toml lists every option.\n";

/// Nothing if help was asked for.
inline std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") return std::nullopt;
    if (!option.starts_with("--")) {
      arguments.picture = option;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(option + " is unknown or requires a value; see --help");
    const std::string value = argv[++i];
    if (option == "--steps") arguments.steps = number(option, value);
    else if (option == "--every") arguments.every = number(option, value);
    else if (option == "--output") arguments.output = value;
    else if (option == "--from") arguments.from = value;
    else if (option == "--die-at") arguments.die_at = number(option, value);
    else if (option == "--die-node") arguments.die_node = static_cast<int>(number(option, value));
    else if (option == "--die-rank") arguments.die_rank = static_cast<int>(number(option, value));
    else throw std::runtime_error("unknown option " + option + "; see --help");
  }
  return arguments;
}

}  // namespace heat2d
