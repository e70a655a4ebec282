// kedge-bench's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/options.hpp"

namespace kedge_bench {

/// One stage made slower, for tests of --check.
struct Slow {
  std::string row;        ///< key of the row; empty: none
  double at_least_s = 0;  ///< a sleep as long as the stage took, and not shorter than this
};

struct Arguments {
  std::uint64_t size_bytes = std::uint64_t{256} << 20U;  ///< of each rank; a multiple of 64 KiB
  std::uint64_t rounds = 7;
  std::vector<kedge::Scheme> schemes;  ///< each measured by itself
  std::uint32_t parity = 2;            ///< of Reed-Solomon
  std::uint32_t set_size = 8;
  std::uint32_t nodes = 0;  ///< that the ranks act as; 0: each one of its own
  std::string store;        ///< an existing directory; empty: /dev/shm, else the temporary directory
  std::uint64_t tags = 0;   ///< measure commits with so many checkpoints on the prefix; 0: do not
  bool persistent = false;  ///< measure what goes to the prefix, too
  std::string
      prefix;  ///< an existing directory; empty: where the program lies, or the temporary directory if that is memory
  kedge::Io prefix_io = kedge::Io::automatic;
  std::string json;    ///< a file for the results; empty: none
  bool check = false;  ///< the exit code tells whether the targets were reached
  bool spoil = false;  ///< for its own test: one byte of what comes back is changed before it is compared
  Slow slow;           ///< for its own test
};

/// Nothing if help was asked for. Throws std::runtime_error that says what is wrong.
[[nodiscard]] std::optional<Arguments> parse(int argc, char** argv);

[[nodiscard]] std::string help();

}  // namespace kedge_bench
