// kedge-bench's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kedge/options.hpp"

namespace kedge_bench {

struct Arguments {
  std::uint64_t size_bytes = std::uint64_t{256} << 20U;  ///< of each rank; a multiple of 4096
  std::uint64_t rounds = 7;
  kedge::Scheme scheme = kedge::Scheme::xor_;
  std::string store;        ///< an existing folder; empty: /dev/shm, else the temporary folder
  bool persistent = false;  ///< measure what goes to the prefix, too
  std::string prefix;  ///< an existing folder; empty: where the program lies, or the temporary folder if that is memory
  std::string json;    ///< a file for the results; empty: none
  bool spoil = false;  ///< for its own test: one byte of what comes back is changed before it is compared
};

/// Nothing if help was asked for. Throws std::runtime_error that says what is wrong.
[[nodiscard]] std::optional<Arguments> parse(int argc, char** argv);

[[nodiscard]] std::string help();

}  // namespace kedge_bench
