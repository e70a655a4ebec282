// How much may be stored at a path: filesystem, memory cgroup, machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Every memory cgroup on the way up from the process's own that has a limit. `membership` is the text of
/// /proc/self/cgroup, `mount` where cgroups are mounted (/sys/fs/cgroup); both versions are read. File pages that the
/// kernel would drop count as free, recently used ones too: a job that has read much data is not full. What waits to be
/// written to a disk does not. A little is held back for what the kernel itself charges for pages of files.
[[nodiscard]] std::vector<SpaceLimit> cgroup_limits(std::string_view membership, const std::string& mount);

/// MemAvailable of /proc/meminfo, given its text.
[[nodiscard]] std::optional<SpaceLimit> machine_limit(std::string_view meminfo);

/// Throws Error.
[[nodiscard]] Space posix_space(const std::string& path);

}  // namespace kedge::fs
