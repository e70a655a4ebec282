// The world an engine stands in; tests give it another one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fs/file_system.hpp"
#include "kedge/engine.hpp"

namespace kedge::engine {

struct Environment {
  std::shared_ptr<fs::FileSystem> file_system;
  std::shared_ptr<Clock> clock;
  /// This process's node, as `{node}` in store.path; empty: from topology.ranks_per_node or the host's name.
  std::string node;
  /// Where a store may be when store.path is empty, best first.
  std::vector<std::string> store_candidates;

  /// The real one: POSIX, the system's clock, KEDGE_NODE.
  [[nodiscard]] static Environment system();
  /// COLLECTIVE. Engine's constructor, in this world.
  [[nodiscard]] static Engine make_engine(std::unique_ptr<Communicator> communicator, Options options,
                                          Environment environment);
};

/// Name of the node that `rank` is on.
[[nodiscard]] std::string node_name(const Environment& environment, const Options& options, int rank);

}  // namespace kedge::engine
