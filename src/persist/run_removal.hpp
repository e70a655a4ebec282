// Removes a run from its prefix: its commits, and its records.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tag_entry.hpp"

namespace kedge::persist {

/// Commits of a run on a prefix.
struct RunOnPrefix {
  std::vector<TagEntry> entries;        ///< commits of this user, newest first; pinned ones, too
  std::vector<std::string> unreadable;  ///< tag directories whose manifest does not say which run they belong to
};

/// Local, reads only. Throws Error{io}.
[[nodiscard]] RunOnPrefix find_on_prefix(fs::FileSystem& file_system, const std::string& prefix,
                                         const std::string& run);

/// Local. Begins as a later start would, so that a job of this run that is still there publishes nothing any more, and
/// removes all commits of the run that are there then; records and notes last: half a removal is not taken for a run
/// that never had a commit. Returns what it removed, and what it could not read and left. Throws Error{io}: not all of
/// it could be removed, which can be tried again.
RunOnPrefix remove_run(const std::shared_ptr<fs::FileSystem>& file_system, const std::string& prefix,
                       const std::string& run);

}  // namespace kedge::persist
