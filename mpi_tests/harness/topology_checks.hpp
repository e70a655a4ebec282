// What find_topology and find_ranks_by_sorted_rank must give on any communicator, for ranks laid out in a known way.
#pragma once

#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm::contract {

/// Number of the node, and of the failure domain, by rank.
struct Layout {
  std::vector<int> node;
  std::vector<int> domain;
};

/// COLLECTIVE. Fails the test where a rank's topology is not that of the layout, or find_ranks_by_sorted_rank not its
/// inverse.
void check_topology(Communicator& communicator, const Layout& layout);

}  // namespace kedge::comm::contract
