// What the figures depend on.
#pragma once

#include <cstdint>
#include <string>

namespace kedge_bench {

struct LocationOptions {
  std::string kernel;
  std::string huge_pages;  ///< what the kernel gives shared memory unasked, as it calls that, or "unknown"
  unsigned cores = 0;      ///< that this process may use
  double load = 0;         ///< of the last minute; it counts this program too
};

[[nodiscard]] LocationOptions look_around();

struct Filesystem {
  std::string name;     ///< such as "ext4"; the number of an unknown one
  bool memory = false;  ///< it forgets with the machine: syncing costs nothing there
};

/// Throws std::runtime_error if there is no such directory.
[[nodiscard]] Filesystem filesystem_of(const std::string& directory);

/// What the memory filesystems of this machine hold, and how much of it in huge pages; 0 where the system does not
/// tell.
struct SharedMemory {
  std::uint64_t bytes = 0;
  std::uint64_t huge_bytes = 0;
};

[[nodiscard]] SharedMemory shared_memory();

/// What of the file is on stable storage is no longer in the page cache. Throws std::runtime_error.
void drop_from_page_cache(const std::string& file);

/// Private memory of this process in bytes, as it is now; 0 where the system does not tell.
[[nodiscard]] std::uint64_t private_bytes();

/// What of this process is in memory, mapped files too; 0 where the system does not tell.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace kedge_bench
