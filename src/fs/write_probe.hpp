// Which way large writes are faster.
#pragma once

#include <string>

#include "fs/direct_writer.hpp"
#include "fs/file_system.hpp"

namespace kedge::fs {

/// FileSystem::probe_writes, with a file at `path`, whose File::write_directly uses `writer`.
[[nodiscard]] WriteProbe probe_writes(FileSystem& file_system, const std::string& path, const DirectWriter& writer);

}  // namespace kedge::fs
