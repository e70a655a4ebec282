// Makes names survive a power loss: a directory is only as durable as every name on the way to it.
#pragma once

#include <string>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Local. Syncs all directories on the way to `path`, from the root to its parent, whoever made them: an earlier start
/// may have died between making and syncing. Skips directories that this user may not open, since this user cannot have
/// made them. Throws Error{io}.
void sync_path(FileSystem& file_system, const std::string& path);

}  // namespace kedge::fs
