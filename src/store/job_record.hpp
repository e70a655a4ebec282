// Which job of the batch system used a store last: its name is that of an empty file, which needs no space.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::store {

/// Local. From now on that is `job` (as job_name() writes it); empty: none. If it cannot be written, no other job's
/// name stays either. Throws Error{io | no_space}.
void record_job(fs::FileSystem& file_system, const std::string& directory, const std::string& job);

/// Pure. By the names of a store's files; empty if there is none, or more than one.
[[nodiscard]] std::string recorded_job(const std::vector<std::string>& names);

}  // namespace kedge::store
