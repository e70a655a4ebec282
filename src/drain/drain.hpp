// Flushes the commits that an ended job left in the node-local stores.
#pragma once

#include <string>

#include "comm/group.hpp"
#include "comm/hosted/process_link.hpp"
#include "kedge/options.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

/// COLLECTIVE over the processes, of which every node needs at least one for its store to count. Recovers the newest
/// commit from the stores that they see, protects and flushes it, with the job's ranks hosted by these processes;
/// `options` are the job's. Returns a summary, equal on all processes. Throws the same Error on all: not_found (no such
/// run, or none of its stores is visible), busy (a job uses the stores, or may still run elsewhere, unless
/// `overtakes`), corrupt (the commit on the prefix is damaged), unrecoverable, or the flush's failure.
[[nodiscard]] std::string drain(const comm::Group& processes, comm::ProcessLink* link, Options options,
                                start::Environment environment, bool overtakes);

}  // namespace kedge::drain
