// Stores that another process removes, wholly or in part, while the job runs.
#pragma once

#include "engine/parts.hpp"

namespace kedge::engine {

/// Local. Whether this rank's store is not what this engine takes it for: its directory, its lock or a file that counts
/// was removed. A store that cannot be looked at is not lost: whoever uses it says why.
[[nodiscard]] bool has_lost_store(const start::Started& started);

/// COLLECTIVE, while nothing is under way. Recreates directories and locks that are gone; a survey then finds what is
/// left of the commits. One warning says so. Throws the same Error on all ranks: io, no_space, or busy if a later start
/// of the run has taken over.
void recreate_lost_stores(const Parts& parts);

}  // namespace kedge::engine
