// Sizes of failure domains, run-length encoded: for a million nodes of eight ranks it is one entry.
#pragma once

#include <cstdint>
#include <vector>

namespace kedge {

/// A number of failure domains that have equally many ranks.
struct DomainCount {
  std::uint64_t domain_count = 0;
  std::uint64_t ranks_per_domain = 0;
  bool operator==(const DomainCount&) const = default;
};

/// All domains of a job, largest first; no two runs have the same `ranks_per_domain`.
using DomainCounts = std::vector<DomainCount>;

}  // namespace kedge
