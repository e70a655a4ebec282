// What the figures depend on.
#pragma once

#include <cstdint>
#include <string>

namespace kedge_bench {

struct Surroundings {
  std::string kernel;
  std::string huge_pages;  ///< setting for shared memory, or "unknown"
  unsigned cores = 0;      ///< that this process may use
  double load = 0;         ///< of the last minute; it counts this program too
};

[[nodiscard]] Surroundings look_around();

struct Filesystem {
  std::string name;     ///< such as "ext4"; the number of an unknown one
  bool memory = false;  ///< it forgets with the machine: syncing costs nothing there
};

/// Throws std::runtime_error if there is no such folder.
[[nodiscard]] Filesystem filesystem_of(const std::string& folder);

/// Private memory of this process in bytes, as it is now; 0 where the system does not tell.
[[nodiscard]] std::uint64_t private_bytes();

}  // namespace kedge_bench
