// Records which job of the batch system used a store last, in the name of an empty file, which needs no space.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::store {

/// Local. Records `job`, named as job_name() does; an empty one removes the record. If writing fails, no other job's
/// name remains either. Throws Error{io | no_space}.
void record_job(fs::FileSystem& file_system, const std::string& directory, const std::string& job);

/// Pure. The job recorded in the names of a store's files; empty if there is none or several.
[[nodiscard]] std::string recorded_job(const std::vector<std::string>& names);

}  // namespace kedge::store
