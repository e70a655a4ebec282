// heat2d's command line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

namespace heat2d {

struct Arguments {
  std::string picture;  ///< PGM; empty: built in
  std::string output;   ///< PGM of the final field; empty: none
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
    throw std::runtime_error(option + " wants a number, not '" + text + "'; see --help");
  }
  return value;
}

/// Nothing if help was asked for and printed.
inline std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::cout << "heat2d [PICTURE.pgm] [--steps N] [--every N] [--output OUT.pgm]\n"
                   "       [--die-at STEP (--die-node K | --die-rank R)]\n";
      return std::nullopt;
    }
    if (!option.starts_with("--")) {
      arguments.picture = option;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(option + " is unknown or wants a value; see --help");
    const std::string value = argv[++i];
    if (option == "--steps") arguments.steps = number(option, value);
    else if (option == "--every") arguments.every = number(option, value);
    else if (option == "--output") arguments.output = value;
    else if (option == "--die-at") arguments.die_at = number(option, value);
    else if (option == "--die-node") arguments.die_node = static_cast<int>(number(option, value));
    else if (option == "--die-rank") arguments.die_rank = static_cast<int>(number(option, value));
    else throw std::runtime_error("unknown option " + option + "; see --help");
  }
  return arguments;
}

}  // namespace heat2d
