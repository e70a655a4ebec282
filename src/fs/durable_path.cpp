#include "fs/durable_path.hpp"

#include <cerrno>

#include "kedge/error.hpp"

namespace kedge::fs {

void sync_path(FileSystem& file_system, const std::string& path) {
  const std::string absolute = file_system.canonical(path);
  for (std::size_t slash = 0; slash != std::string::npos; slash = absolute.find('/', slash + 1)) {
    try {
      file_system.sync_directory(slash == 0 ? "/" : absolute.substr(0, slash));
    } catch (const Error& error) {
      const int reason = error.failure().system_errno;
      // EINVAL, EROFS: a filesystem without stable names (proc, a read-only root) has no name made by Kedge.
      if (reason != EACCES && reason != EPERM && reason != EINVAL && reason != EROFS) throw;
    }
  }
}

}  // namespace kedge::fs
