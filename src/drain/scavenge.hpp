// Takes what a job left in the stores of its nodes to the prefix, node by node and without messages between them.
#pragma once

#include <string>

#include "kedge/options.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

/// Local, on one node. Copies what the store in `directory` has of commits that are newer than those on the prefix to
/// `<prefix>/.kedge/<run>/scavenged/`; when all containers of the newest are there, by whichever nodes, also finishes.
/// Returns what was done, in words. `options` are those that the flush is to go by. Throws Error{busy} (a job works
/// with the store), not_found, no_space, io: what is in the store stays there in any case.
[[nodiscard]] std::string scavenge_store(const std::string& directory, const Options& options,
                                         const start::Environment& environment);

/// Local. Flushes the newest commit that can be recovered from what was copied so far, as when all nodes that did not
/// copy theirs are lost. Of the run that `options` name. Throws busy, too, if a job may be at work that was started
/// since, unless it `overtakes`. Likewise.
[[nodiscard]] std::string finish_scavenge(const Options& options, const start::Environment& environment,
                                          bool overtakes);

}  // namespace kedge::drain
