// Where the ranks are: which share a node, which share a failure domain, and in which order domains are counted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/domain_counts.hpp"
#include "kedge/communicator.hpp"

namespace kedge::comm {

/// Topology as one rank knows it. Nobody knows all: memory grows with the ranks of a node and of a domain, and with the
/// number of different domain sizes.
struct Topology {
  std::vector<int> node;    ///< ranks on this node, ascending, this one included
  std::vector<int> domain;  ///< ranks of this failure domain, ascending, this one included
  /// Position of this rank when ranks are counted domain by domain: larger domains first, among domains of one size
  /// those with the lower lowest rank first, in a domain by rank.
  std::uint64_t place = 0;
  DomainCounts domains;  ///< all domains; the same on every rank
};

/// COLLECTIVE. `node` and `domain` name this rank's; equal names are the same node or domain.
[[nodiscard]] Topology find_topology(Communicator& communicator, std::string_view node, std::string_view domain,
                                     Deadline deadline);

/// COLLECTIVE. The ranks at these places; each rank asks for what it needs, or for nothing.
[[nodiscard]] std::vector<int> ranks_of_sorted(Communicator& communicator, const Topology& topology,
                                               std::span<const std::uint64_t> places, Deadline deadline);

/// COLLECTIVE. For each of `values` the sum over all lower ranks, modulo 2^64; all ranks must give equally many. Takes
/// log2(ranks) rounds of one message each (Hillis and Steele, "Data parallel algorithms", CACM 1986).
[[nodiscard]] std::vector<std::uint64_t> exclusive_scan(Communicator& communicator,
                                                        std::span<const std::uint64_t> values, Deadline deadline);

}  // namespace kedge::comm
