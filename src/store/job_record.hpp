// Which job of the batch system used a store last: its name is that of an empty file, which needs no space.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::store {

/// Local. From now on it is this one (as job_name() writes it); empty: none. No other's name stays if this one's cannot
/// be written. Throws Error{io | no_space}.
void note_job(fs::FileSystem& file_system, const std::string& directory, const std::string& job);

/// Pure. By the names of a store's files; empty if there is none, or more than one.
[[nodiscard]] std::string noted_job(const std::vector<std::string>& names);

}  // namespace kedge::store
