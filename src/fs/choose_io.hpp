// Decides whether large writes go through the page cache or past it.
#pragma once

#include <string>

#include "fs/direct_writer.hpp"
#include "fs/file_system.hpp"
#include "kedge/options.hpp"

namespace kedge::fs {

struct IoChoice {
  bool is_direct = false;  ///< past the page cache
  std::string reason;      ///< reason, for the log
};

/// Local. For files that are synced after writing. Measures with FileSystem::probe_writes, unless `io` says buffered.
/// Failing to measure is not an error.
[[nodiscard]] IoChoice choose_io(FileSystem& file_system, Io io, const ProbeTarget& target);

/// FileSystem::probe_writes, with `writer` for File::enable_direct_writes.
[[nodiscard]] WriteProbe probe_writes(FileSystem& file_system, const ProbeTarget& target, const DirectWriter& writer);

}  // namespace kedge::fs
