// How much may be stored at a path: filesystem, memory cgroup, machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// What one of several limits still allows, and its name for messages.
struct Room {
  std::uint64_t free_bytes = 0;
  std::string limit;
};

/// The tightest memory cgroup on the way up from the process's own, or nothing if none limits it.
/// `membership` is the text of /proc/self/cgroup, `mount` where cgroups are mounted (/sys/fs/cgroup); both
/// versions are read. File pages that the kernel would drop first (inactive_file) count as free: a job that
/// has read much data is not full.
[[nodiscard]] std::optional<Room> cgroup_room(std::string_view membership, const std::string& mount);

/// MemAvailable of /proc/meminfo, given its text.
[[nodiscard]] std::optional<Room> machine_room(std::string_view meminfo);

/// Throws Error.
[[nodiscard]] Space posix_space(const std::string& path);

}  // namespace kedge::fs
