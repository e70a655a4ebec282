// This process's part of a run's directory on its node.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "store/new_files.hpp"
#include "store/node_ranks.hpp"
#include "store/retirement.hpp"
#include "store/routed_directories.hpp"
#include "store/run_directory.hpp"
#include "store/slots.hpp"
#include "store/store_space.hpp"
#include "store/stored_files.hpp"

namespace kedge::store {

/// The directory, the files in it, and their users, as separate objects. All calls are local and thread-safe, one at a
/// time.
struct NodeStore {
  /// `ranks_on_node` is ascending and contains this rank; if it is empty, no file is adopted. Throws Error{bad_state}
  /// otherwise, io.
  NodeStore(std::shared_ptr<fs::FileSystem> file_system, const Options::Store& options, StoreLocation location,
            LogicalRank logical_rank, std::vector<int> ranks_on_node = {});
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  /// Bytes that count towards the quota: in files of all ranks that run on this node, and in routed files.
  [[nodiscard]] std::uint64_t node_bytes() const;
  /// Removes what crashed starts of this rank left behind, except its own files.
  void remove_leftovers();
  /// Removes every file of this rank and every adopted one.
  void remove_all_files();

  NodeRanks ranks;
  RunDirectory directory;
  StoreSpace space;
  RoutedDirectories routed_directories;
  Slots slots;
  StoredFiles files{slots};
  NewFiles new_files{slots};
  Retirement retirement{slots};
};

}  // namespace kedge::store
