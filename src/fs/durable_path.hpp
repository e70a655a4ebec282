// Makes names survive a power loss: a directory is only as durable as every name on the way to it.
#pragma once

#include <string>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Local. Syncs every directory on the way to `path`, from the root to its parent. An earlier start may have made one
/// and died before it synced it. Directories for which this user has no permission are skipped: this user did not make
/// them. Throws Error{io}.
void sync_path(FileSystem& file_system, const std::string& path);

}  // namespace kedge::fs
