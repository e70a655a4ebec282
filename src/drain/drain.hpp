// Takes what a job left in the node-local stores to the prefix, after the job.
#pragma once

#include <string>

#include "comm/group.hpp"
#include "comm/hosted/process_link.hpp"
#include "kedge/options.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

/// COLLECTIVE over the processes, any number of them: at least one on each node whose store counts. The newest commit
/// that can be recovered from what they see is rebuilt where it has to be, protected, and flushed, by ranks that the
/// processes host; `options` are the job's. Returns what was done, in words, the same on every process. Throws the same
/// Error on every process: not_found (no such run, or no store of it is seen), busy (a job works with the stores, or
/// may be at work elsewhere, which counts unless it `overtakes`), corrupt (what is on the prefix already is damaged),
/// unrecoverable, or what kept it from the prefix.
[[nodiscard]] std::string drain(const comm::Group& processes, comm::ProcessLink* link, Options options,
                                start::Environment environment, bool overtakes);

}  // namespace kedge::drain
