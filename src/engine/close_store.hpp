// Ends the use of a run's node-local files when its engine ends.
#pragma once

#include <string>

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "engine/commit_markers.hpp"
#include "start/start.hpp"

namespace kedge::engine {

/// COLLECTIVE. Keeps or removes the store as store.on_exit says, or keeps it if `keeps_files`; releases the locks, and
/// rank 0 logs what stays and how to free it. Throws the same Error on all ranks if something could not be removed.
void close_store(const start::Setup& setup, const start::Started& started, const comm::Group& group,
                 commits::Ledger& ledger, CommitMarkers& notes, bool keeps_files);

/// Local, rank 0. Names outputs that are not on the prefix, whichever number of ranks made them, and how they get
/// there.
void warn_of_unflushed_outputs(const start::Setup& setup, const start::Started& started, const commits::Ledger& ledger);

/// Local. A sentence for whoever has to flush a job's newest checkpoint himself.
[[nodiscard]] std::string how_to_flush(const start::Setup& setup, const start::Started& started);

}  // namespace kedge::engine
