// Flushes what a job left in its nodes' stores, node by node and without messages between nodes.
#pragma once

#include <string>

#include "engine/environment.hpp"
#include "kedge/options.hpp"

namespace kedge::drain {

/// Local, on one node. Copies commits newer than the prefix's from the store in `directory` to
/// `<prefix>/.kedge/<run>/scavenged/`. Once all containers of the newest commit are there, from any nodes, also flushes
/// it, with `options`. Returns a summary. Throws Error{busy} (a job uses the store), not_found, no_space, io. The store
/// is not changed.
[[nodiscard]] std::string scavenge_store(const std::string& directory, const Options& options,
                                         const engine::Environment& environment);

/// Local. Flushes the newest commit that is recoverable from the copies so far: for when the nodes that copied nothing
/// are lost. `options` name the run. Returns a summary. Throws as scavenge_store(); busy, too, if a job that started
/// later may be running, unless `overtakes`.
[[nodiscard]] std::string finish_scavenge(const Options& options, const engine::Environment& environment,
                                          bool overtakes);

}  // namespace kedge::drain
