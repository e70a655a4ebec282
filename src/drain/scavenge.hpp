// Flushes what a job left in its nodes' stores, node by node and without messages between nodes.
#pragma once

#include <string>

#include "kedge/options.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

/// Local, on one node. Copies commits newer than the prefix's from the store in `directory` to
/// `<prefix>/.kedge/<run>/scavenged/`. Once all containers of the newest commit are there, from any nodes, also flushes
/// it, with `options`. Returns a summary. Throws Error{busy} (a job uses the store), not_found, no_space, io. The store
/// is not changed.
[[nodiscard]] std::string scavenge_store(const std::string& directory, const Options& options,
                                         const start::Environment& environment);

/// Local. Flushes the newest commit that can be recovered from what was copied so far, as when all nodes that did not
/// copy theirs are lost. Of the run that `options` name. Throws busy, too, if a job may be at work that was started
/// since, unless it `overtakes`. Likewise.
[[nodiscard]] std::string finish_scavenge(const Options& options, const start::Environment& environment,
                                          bool overtakes);

}  // namespace kedge::drain
