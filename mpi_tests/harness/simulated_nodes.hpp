// Nodes of a few ranks each on this machine, for engines in the real environment.
#pragma once

#include <cstdlib>
#include <string>

namespace kedge::faults {

/// As long as it lives, engines that this process makes count so many consecutive ranks as one node.
class SimulatedNodes {
 public:
  explicit SimulatedNodes(int ranks_per_node) {
    ::setenv("KEDGE_TEST_RANKS_PER_NODE", std::to_string(ranks_per_node).c_str(), 1);
  }
  ~SimulatedNodes() { ::unsetenv("KEDGE_TEST_RANKS_PER_NODE"); }
  SimulatedNodes(const SimulatedNodes&) = delete;
  SimulatedNodes& operator=(const SimulatedNodes&) = delete;
};

}  // namespace kedge::faults
