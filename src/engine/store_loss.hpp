// Stores that another process removes, wholly or in part, while the job runs.
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "engine/commit_markers.hpp"
#include "fs/file_system.hpp"
#include "start/start.hpp"

namespace kedge::engine {

/// Local. Whether this rank's store is not what this engine takes it for: its directory, its lock or a file that counts
/// was removed. A store that cannot be looked at is not lost: whoever uses it says why.
[[nodiscard]] bool has_lost_store(const start::NodeHandles& node);

/// What it takes to recreate this rank's store. All that is referred to must outlive it.
struct StoreRecreation {
  const comm::Group& group;
  const start::NodeHandles& node;
  CommitMarkers& markers;
  fs::FileSystem& file_system;
  Clock& clock;
  const Log& log;
  bool durable = false;  ///< store.durable

  /// COLLECTIVE, while nothing is under way. Recreates directories and locks that are gone; a survey then finds what is
  /// left of the commits. One warning says so. Throws the same Error on all ranks: io, no_space, or busy if a later
  /// start of the run has taken over.
  void run() const;

 private:
  void restore() const;
};

}  // namespace kedge::engine
