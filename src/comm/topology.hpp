// Which ranks share a node or a failure domain, and their order by failure domain.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/domain_counts.hpp"
#include "kedge/communicator.hpp"

namespace kedge::comm {

/// The topology as one rank knows it. Memory grows with the ranks of a node and of a domain, and with the number of
/// different domain sizes, but not with all ranks.
struct Topology {
  std::vector<int> node_ranks;    ///< ranks on this node, ascending, this one included
  std::vector<int> domain_ranks;  ///< ranks of this failure domain, ascending, this one included
  /// This rank's number when ranks are sorted by failure domain: larger domains first, among domains of one size those
  /// with the lower lowest rank first, in a domain by rank.
  std::uint64_t sorted_rank = 0;
  DomainCounts domain_counts;  ///< all domains; the same on every rank
};

/// COLLECTIVE. Finds the topology. `node` and `domain` name this rank's; equal names are the same node or domain.
[[nodiscard]] Topology find_topology(Communicator& communicator, std::string_view node, std::string_view domain,
                                     Deadline deadline);

/// COLLECTIVE. Returns the ranks with these sorted ranks; each rank asks for those that it needs, or for none.
[[nodiscard]] std::vector<int> find_ranks_by_sorted_rank(Communicator& communicator, const Topology& topology,
                                                         std::span<const std::uint64_t> sorted_ranks,
                                                         Deadline deadline);

/// COLLECTIVE. Returns for each of `values` the sum over all lower ranks, modulo 2^64; all ranks must give equally
/// many. Takes log2(ranks) rounds of one message each (Hillis and Steele, "Data parallel algorithms", CACM 1986).
[[nodiscard]] std::vector<std::uint64_t> exclusive_scan(Communicator& communicator,
                                                        std::span<const std::uint64_t> values, Deadline deadline);

}  // namespace kedge::comm
