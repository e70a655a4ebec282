// Lists the commits in a store, for tools.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

/// Local, reads only. The run's commits with a sealed container, or a copy of one, in this store directory, newest
/// first, including superseded ones until their files are overwritten. Skips unreadable files. Throws Error{io |
/// not_found} if the directory cannot be listed.
[[nodiscard]] std::vector<CommitHead> sealed_commits(fs::FileSystem& file_system, const std::string& directory,
                                                     const Id128& run_id);

}  // namespace kedge::store
