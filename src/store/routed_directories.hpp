// Directories for files that the application writes and reads by its own means, in the run's directory on this node.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "kedge/types.hpp"
#include "store/run_directory.hpp"

namespace kedge::store {

/// All calls are local and thread-safe.
class RoutedDirectories {
 public:
  RoutedDirectories(const RunDirectory& directory, LogicalRank mine) : directory_(directory), mine_(mine) {}

  /// Makes a new, empty directory for files of this rank, which the caller removes. Throws no_space, io.
  [[nodiscard]] std::string make();
  /// Removes this rank's directories of crashed starts.
  void sweep() const;
  /// Allocated bytes in those of all ranks.
  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  const RunDirectory& directory_;
  LogicalRank mine_;
  std::atomic<std::uint64_t> count_ = 0;
};

}  // namespace kedge::store
