// Removes a node-local store that no job uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "store/store_record.hpp"

namespace kedge::store {

/// Content of a run's directory on this node.
struct StoreContent {
  StoreRecord record;
  std::string job;                         ///< of a batch system, of the last start; empty if unknown
  std::vector<std::string> files;          ///< that Kedge wrote, by name; also directories of routed files
  std::uint64_t bytes = 0;                 ///< bytes of these files
  std::vector<std::uint64_t> dead_starts;  ///< starts that left a lock which nobody holds: they are dead
  std::string used_by;                     ///< who holds a lock there, other than this process; empty: nobody
};

/// Local, reads only. Throws Error{io}.
[[nodiscard]] StoreContent content_of_store(fs::FileSystem& file_system, const std::string& directory);

/// Local. Removes what Kedge wrote there, containers first and last what says whose they were, so that half a removal
/// is seen as that; needs no free space. And the directory, if nothing else is in it. Returns how many other files are
/// left. Throws Error{busy} if a job uses the store; a job that starts meanwhile gets busy. io.
std::size_t remove_store(fs::FileSystem& file_system, const std::string& directory);

}  // namespace kedge::store
