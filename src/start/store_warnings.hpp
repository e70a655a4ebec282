// Warnings of a start about stores that it may not find: where they are to lie, and whether they were copied away.
#pragma once

#include <string>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "persist/run_start.hpp"

namespace kedge::start {

/// Root of one rank's stores: as it was given, and what it became.
struct GivenRoot {
  bool is_given = false;  ///< store.path is set
  bool counts = false;    ///< once a node
  std::string node;       ///< for people
  std::string directory;  ///< where its stores lie
};

/// COLLECTIVE. Warns if store.path is set for some nodes and not for others: some launchers pass the environment to one
/// node only, and the default place of the others may be small, or be emptied.
void warn_of_missing_roots(const comm::Group& group, const GivenRoot& mine, const Log& log);

/// Local, rank 0; not for a drain. No start looks into what was copied before it was complete: it warns, and says how
/// to use it.
void warn_of_scavenged_stores(fs::FileSystem& file_system, const persist::RecordDirectory& records, const Log& log);

}  // namespace kedge::start
