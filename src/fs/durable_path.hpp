// Names that survive a power loss: a directory is only as durable as every name on the way to it.
#pragma once

#include <string>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Local. Brings the names on the way to `path` to stable storage, from the root down to its parent's entry for
/// it. It does not matter who made them or when: an earlier start may have died between making and syncing.
/// Directories that this user has no permission to open were not created by this user and are skipped. Throws
/// Error{io}.
void sync_path(FileSystem& file_system, const std::string& path);

}  // namespace kedge::fs
