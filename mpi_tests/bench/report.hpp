// The results as tables for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "judge.hpp"
#include "surroundings.hpp"
#include "table.hpp"

namespace kedge_bench {

inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

/// Of one scheme.
struct Measured {
  kedge::Scheme scheme = kedge::Scheme::xor_;
  std::uint32_t parity = 0;     ///< losses that a set survives
  std::uint32_t members = 0;    ///< of a set, at most
  std::uint64_t set_aside = 0;  ///< rounds that were measured again
  SharedMemory held;            ///< when the rounds are over, without the plain files
  Table table;
};

struct Results {
  Arguments arguments;
  int ranks = 0;
  int nodes = 0;
  LocationOptions surroundings;
  bool network = false;         ///< messages leave the machine
  Filesystem disk;              ///< of the prefix
  std::optional<double> dd_s;   ///< all ranks' plain files copied by dd
  double write_and_read_s = 0;  ///< the same by this program, right after
  std::vector<Measured> measured;
};

/// Which targets hold.
[[nodiscard]] Kind kind_of(const Results& results, const Measured& measured);
/// Rows of one scheme with their verdicts.
[[nodiscard]] std::vector<Judged> judge(const Results& results, const Measured& measured);
/// Of --check, over all schemes.
[[nodiscard]] int exit_code(const Results& results);

[[nodiscard]] std::string as_text(const Results& results);
[[nodiscard]] std::string as_json(const Results& results);

}  // namespace kedge_bench
