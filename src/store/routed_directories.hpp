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
  RoutedDirectories(const RunDirectory& directory, LogicalRank own_rank) : directory_(directory), own_rank_(own_rank) {}

  /// Makes a new, empty directory for files of this rank, which the caller removes. Throws no_space, io.
  [[nodiscard]] std::string make_directory();
  /// Removes this rank's directories of crashed starts.
  void remove_leftovers() const;
  /// Allocated bytes in those of all ranks.
  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  const RunDirectory& directory_;
  LogicalRank own_rank_;
  std::atomic<std::uint64_t> count_ = 0;
};

}  // namespace kedge::store
