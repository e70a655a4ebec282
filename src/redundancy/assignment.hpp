// The scheme and the redundancy set of this rank, determined once, at the start.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "comm/topology.hpp"
#include "kedge/options.hpp"
#include "redundancy/exchange.hpp"

namespace kedge::redundancy {

struct RedundancySetAssignment {
  Scheme scheme = Scheme::single;  ///< not automatic; equal on all ranks
  std::uint32_t parity_count = 1;  ///< rs: tolerated losses per set, 2 to 4; otherwise 1. Equal on all ranks
  std::uint64_t set_number = 0;    ///< number of this rank's set
  Membership membership;           ///< members of this rank's set; only this rank if the scheme is single
  std::vector<int> domain_ranks;   ///< ranks of this rank's failure domain, ascending, including this one
  /// The lowest rank outside rank 0's failure domain, which keeps copies of rank 0's files; nothing if there is only
  /// one domain. Equal on all ranks.
  std::optional<int> second_root;
};

/// COLLECTIVE. Determines the scheme and the members of this rank's set. Throws invalid_argument if the layout of ranks
/// over failure domains does not permit the requested scheme, unless it may be `or_single`.
[[nodiscard]] RedundancySetAssignment assign_redundancy_set(const comm::Group& group, const comm::Topology& topology,
                                                            const Options::Redundancy& options, bool or_single = false);

/// Local. Logs an automatically selected scheme other than xor.
void log_automatic_scheme(const comm::Topology& topology, const Options::Redundancy& options, const Log& log);

}  // namespace kedge::redundancy
