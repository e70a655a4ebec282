// Removes a node-local store that no job uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "store/store_record.hpp"

namespace kedge::store {

struct StoreContent {
  StoreRecord record;
  std::string job;                 ///< the batch system's job at the last start; empty if unknown
  std::vector<std::string> files;  ///< written by Kedge, sorted, including directories of routed files
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> dead_starts;  ///< incarnations of dead starts, whose locks remain but are free
  std::string used_by;                     ///< holder of a lock, if another process holds one; else empty
};

/// Local, reads only. Throws Error{io}.
[[nodiscard]] StoreContent read_store_content(fs::FileSystem& file_system, const std::string& directory);

/// Local. Removes Kedge's files, containers first and the owner record last, which shows a partial removal as such, and
/// the directory if it is then empty. Needs no free space. Returns the number of other files. Throws Error{busy} if a
/// job uses the store, io; a job that starts meanwhile gets busy.
std::size_t remove_store(fs::FileSystem& file_system, const std::string& directory);

}  // namespace kedge::store
