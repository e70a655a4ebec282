// The results as a table for people and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "surroundings.hpp"
#include "table.hpp"

namespace kedge_bench {

struct Results {
  Arguments arguments;
  int ranks = 0;
  Surroundings surroundings;
  Filesystem disk;  ///< of the prefix
  Table table;
  std::uint64_t peak_private_bytes = 0;  ///< of any rank, beyond its own data
  std::optional<double> dd_s;            ///< all ranks' plain files copied by dd
  double write_and_read_s = 0;           ///< the same by this program, right after
};

[[nodiscard]] std::string as_text(const Results& results);
[[nodiscard]] std::string as_json(const Results& results);

}  // namespace kedge_bench
