// What an engine uses of the process and the system; tests replace it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "device/devices.hpp"
#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "persist/manifest_builder.hpp"
#include "redundancy/plan_stripes.hpp"
#include "start/launch.hpp"

namespace kedge::start {

struct Environment {
  std::shared_ptr<fs::FileSystem> file_system;
  std::shared_ptr<Clock> clock;
  std::shared_ptr<device::Devices> devices = device::system_devices();
  /// This process's node, as `{node}` in store.path; if empty, the node follows from ranks_per_node or the host's name.
  std::string node;
  /// Number of consecutive ranks of each simulated node (KEDGE_TEST_RANKS_PER_NODE); 0: real nodes.
  std::uint32_t ranks_per_node = 0;
  /// Identity of this machine among all others: boot id and host name.
  std::string machine;
  /// The mounts that this process sees, as a text that is equal for all processes of this machine with the same mounts;
  /// empty if unknown.
  std::string mounts;
  /// This process and its ancestors.
  ProcessIds processes;
  /// The current directory, which the program may change later; if empty, relative paths stay as they are.
  std::string directory;
  /// Number of cores that this process may use.
  unsigned cores = 1;
  /// Returns an environment variable, for topology.failure_domain; nothing if it is not set.
  std::function<std::optional<std::string>(const std::string& name)> find_variable = [](const auto&) {
    return std::optional<std::string>();
  };
  /// Watches for these signals (exit.signals) while the returned function exists, which returns the number of a signal
  /// that came, or 0.
  std::function<std::function<int()>(const std::vector<std::string>& names, const Log& log)> watch_signals =
      [](const auto&, const auto&) { return std::function<int()>([] { return 0; }); };
  /// Roots for the store when store.path is empty, best first.
  std::vector<std::string> store_candidates;

  /// Sizes of the messages for protecting and rebuilding.
  redundancy::PieceSettings pieces = {};
  /// Maximum number of shards of global arrays for which the manifest has an HDF5 view.
  std::uint64_t view_shards_max = persist::kViewShardsMax;

  /// Whether this start only flushes what others left; recorded for starts that check whether a job may still run.
  bool is_drain = false;

  /// Returns the real environment: POSIX, the system's clock, KEDGE_NODE, the process's variables.
  [[nodiscard]] static Environment system();
};

/// Returns a path relative to the directory that was current when the engine was made.
[[nodiscard]] std::string absolute_path(const Environment& environment, const std::string& path);

/// Returns the name of this process's node, for people and in paths. `rank` is this process's.
[[nodiscard]] std::string node_name(const Environment& environment, int rank);

/// Whether several nodes may be on one machine, according to KEDGE_NODE or ranks_per_node.
[[nodiscard]] bool simulates_nodes(const Environment& environment);

/// Returns the identity of a node in the job: its machine and KEDGE_NODE, or its number if nodes are simulated.
[[nodiscard]] std::string node_identity(const Environment& environment, int rank);

/// Returns the name of the failure domain of `rank`. Throws Error{invalid_argument} if it must come from an environment
/// variable that is not set.
[[nodiscard]] std::string failure_domain(const Environment& environment, const Options& options, int rank);

}  // namespace kedge::start
