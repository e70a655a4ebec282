// Measures whether large writes are faster through the page cache or past it.
#pragma once

#include "fs/direct_writer.hpp"
#include "fs/file_system.hpp"

namespace kedge::fs {

/// FileSystem::probe_writes, with `writer` for File::enable_direct_writes.
[[nodiscard]] WriteProbe probe_writes(FileSystem& file_system, const ProbeTarget& place, const DirectWriter& writer);

}  // namespace kedge::fs
