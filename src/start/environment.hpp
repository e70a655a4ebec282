// The world an engine stands in; tests give it another one.
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
  /// This process's node, as `{node}` in store.path; empty: from ranks_per_node or the host's name.
  std::string node;
  /// Simulates nodes of this many consecutive ranks each (KEDGE_TEST_RANKS_PER_NODE); 0: the real ones.
  std::uint32_t ranks_per_node = 0;
  /// Identity of this machine among all others: boot id and host name.
  std::string machine;
  /// The mounts that this process sees, the same text in every process of this machine that sees the same ones; empty
  /// if that is not known.
  std::string mounts;
  /// This process, and those above it.
  ProcessIds processes;
  /// The current directory, which the program may change later; empty: paths stay as they are.
  std::string directory;
  /// Cores that this process may run on.
  unsigned cores = 1;
  /// Value of an environment variable, for topology.failure_domain; nothing if it is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable = [](const auto&) {
    return std::optional<std::string>();
  };
  /// Watches for these signals (exit.signals) as long as what it returns lives: the number of one that came, or 0.
  std::function<std::function<int()>(const std::vector<std::string>& names, const Log& log)> watch_signals =
      [](const auto&, const auto&) { return std::function<int()>([] { return 0; }); };
  /// Where a store may be when store.path is empty, best first.
  std::vector<std::string> store_candidates;

  /// Sizes of the messages that protect and rebuild.
  redundancy::PieceSettings pieces = {};
  /// The manifest has an HDF5 view of global arrays with up to this many shards.
  std::uint64_t view_shards_max = persist::kViewShardsMax;

  /// This start only flushes what others left: for whoever asks later whether a job may still run.
  bool is_drain = false;

  /// The real one: POSIX, the system's clock, KEDGE_NODE, the process's variables.
  [[nodiscard]] static Environment system();
};

/// A relative path as it was meant when the engine was made.
[[nodiscard]] std::string absolute_path(const Environment& environment, const std::string& path);

/// Name of the node that `rank`, which is this process, is on: for people and in paths.
[[nodiscard]] std::string node_name(const Environment& environment, int rank);

/// Whether several nodes may be on one machine, because somebody says so.
[[nodiscard]] bool simulates_nodes(const Environment& environment);

/// Identity of a node in the job: its machine and KEDGE_NODE, or its number if nodes are simulated.
[[nodiscard]] std::string node_identity(const Environment& environment, int rank);

/// Name of the failure domain that `rank` is in. Throws Error{invalid_argument} if it is to come from an environment
/// variable that is not set.
[[nodiscard]] std::string failure_domain(const Environment& environment, const Options& options, int rank);

}  // namespace kedge::start
