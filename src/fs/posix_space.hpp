// Free space at a path: limits of the filesystem, memory cgroups and the machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Returns a limit for each memory cgroup from the process's own to the root that has one. `membership` is the text of
/// /proc/self/cgroup, `mount` the mount point of cgroups (/sys/fs/cgroup), of either version. Page cache that the
/// kernel could drop counts as free, even recently used pages, so that reading much data does not make a job look full;
/// pages not yet written back do not. A little is subtracted for the kernel's own overhead.
[[nodiscard]] std::vector<SpaceLimit> cgroup_limits(std::string_view membership, const std::string& mount);

/// The limit given by MemAvailable in the text of /proc/meminfo.
[[nodiscard]] std::optional<SpaceLimit> machine_limit(std::string_view meminfo);

/// Free space at the path. Throws Error.
[[nodiscard]] Space posix_space(const std::string& path);

}  // namespace kedge::fs
