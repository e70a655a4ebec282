// How this rank's containers are protected, and by whom: settled once, at the start.
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

struct SetAssignment {
  Scheme scheme = Scheme::single;  ///< never automatic; the same on every rank
  std::uint32_t parities = 1;      ///< rs: members of a set that may be lost, 2 to 4; else 1. The same on every rank
  std::uint64_t set_number = 0;    ///< number of this rank's set
  Membership membership;           ///< members of this rank's set; alone in it if the scheme is single
  std::vector<int> domain;         ///< ranks of this rank's failure domain, ascending, this one included
  /// The lowest rank outside of rank 0's failure domain, which keeps a copy of what only rank 0 has; nothing if all are
  /// in one. The same on every rank.
  std::optional<int> second_root;
};

/// COLLECTIVE. Settles the scheme and finds the members of this rank's set. Throws invalid_argument if a scheme was
/// asked for that the layout of ranks over failure domains does not permit.
[[nodiscard]] SetAssignment assign_set(const comm::Group& group, const comm::Topology& topology,
                                       const Options::Redundancy& options);

/// Local. Logs what was chosen, if the choice was left to Kedge and is not xor.
void log_choice(const comm::Topology& topology, const Options::Redundancy& options, const Log& log);

}  // namespace kedge::redundancy
