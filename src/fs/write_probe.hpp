// Which way large writes are faster.
#pragma once

#include <string>

#include "fs/direct_writer.hpp"
#include "fs/file_system.hpp"

namespace kedge::fs {

/// FileSystem::probe_writes, with files whose File::enable_direct_writes uses `writer`.
[[nodiscard]] WriteProbe probe_writes(FileSystem& file_system, const ProbeTarget& place, const DirectWriter& writer);

}  // namespace kedge::fs
