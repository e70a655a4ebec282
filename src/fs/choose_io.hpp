// Which way large writes go to a place: through the page cache, or past it.
#pragma once

#include <string>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"

namespace kedge::fs {

struct ChosenIo {
  bool direct = false;  ///< past the page cache
  std::string why;      ///< for the log
};

/// Local. For what is synced after it was written. Measures (FileSystem::probe_writes), unless `io` says buffered; that
/// nothing can be measured is no error.
[[nodiscard]] ChosenIo choose_io(FileSystem& file_system, Io io, const ProbeTarget& place);

}  // namespace kedge::fs
