// Warnings of a start about stores that `kedge scavenge` has copied to the prefix, and not flushed.
#pragma once

#include "base/log.hpp"
#include "fs/file_system.hpp"
#include "persist/run_records.hpp"

namespace kedge::start {

/// Local, rank 0; not for a drain. No start looks into what was copied before it was complete: it warns, and says how
/// to use it.
void warn_of_scavenged_stores(fs::FileSystem& file_system, const persist::RunRecords& records, const Log& log);

}  // namespace kedge::start
