// Warnings of a start about stores that it may not find: where they are to lie, and whether they were copied away.
#pragma once

#include <string>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "persist/run_start.hpp"

namespace kedge::start {

/// The root of one rank's stores, as it was given and as it was resolved.
struct GivenRoot {
  bool is_given = false;  ///< store.path is set
  bool counts = false;    ///< true for one rank of each node
  std::string node;       ///< name for people
  std::string directory;  ///< directory that contains the stores
};

/// COLLECTIVE. Warns if store.path is set for some nodes and not for others: some launchers pass the environment to one
/// node only, and the default root of the others may be small, or be emptied.
void warn_of_missing_roots(const comm::Group& group, const GivenRoot& mine, const Log& log);

/// Warns of copies of stores that were not completed, which no start reads, and says how to use them. Local, rank 0;
/// not for a drain.
void warn_of_scavenged_stores(fs::FileSystem& file_system, const persist::RecordDirectory& records, const Log& log);

}  // namespace kedge::start
