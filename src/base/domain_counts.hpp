// Sizes of failure domains, run-length encoded: for a million nodes of eight ranks it is one entry.
#pragma once

#include <cstdint>
#include <vector>

namespace kedge {

/// A number of failure domains with the same number of ranks each.
struct DomainCount {
  std::uint64_t domains = 0;
  std::uint64_t ranks_each = 0;
  bool operator==(const DomainCount&) const = default;
};

/// All domains of a job, largest first; no two runs have the same `ranks_each`.
using DomainCounts = std::vector<DomainCount>;

}  // namespace kedge
