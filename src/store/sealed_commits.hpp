// Which commits a store has something of: for whoever does not work with it.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

/// Local, reads only. Commits of a run that containers, or copies of such, in this directory of a store are sealed for,
/// each once, the newest first: also superseded ones, until their files are overwritten. A file that cannot be read is
/// left out. Throws Error{io | not_found} if the directory cannot be listed.
[[nodiscard]] std::vector<CommitHead> sealed_commits(fs::FileSystem& file_system, const std::string& directory,
                                                     const Id128& run_id);

}  // namespace kedge::store
