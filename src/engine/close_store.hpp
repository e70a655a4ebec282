// Ends the use of a run's node-local files when its engine ends.
#pragma once

#include <string>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "engine/commit_markers.hpp"
#include "kedge/options.hpp"
#include "start/start.hpp"

namespace kedge::engine {

/// What the end of an engine closes, and how.
struct StoreClosing {
  const comm::Group& group;
  const start::StartResult& started;
  commits::Ledger& ledger;
  CommitMarkers& markers;
  OnExit on_exit = OnExit::keep;  ///< whether the files stay
  const Options::Persistent& persistent;
  const Log& log;
};

/// COLLECTIVE. Keeps or removes the store, releases the locks, and rank 0 logs what stays and how to free it. Throws
/// the same Error on all ranks if something could not be removed.
void close_store(const StoreClosing& closing);

/// Local, rank 0. Names outputs that are not on the prefix, whichever number of ranks made them; `how_to_flush`: how
/// they get there.
void warn_of_unflushed_outputs(const commits::Ledger& ledger, const std::string& how_to_flush, const Log& log);

/// Pure. Says how to flush a job's newest checkpoint by hand. `ranks`: how many a job must have to flush it; 0: as many
/// as this one.
[[nodiscard]] std::string how_to_flush(const std::string& prefix, const commits::RunIdentity& run,
                                       std::uint32_t ranks = 0);

}  // namespace kedge::engine
