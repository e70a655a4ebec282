#include "fs/system_error.hpp"

#include <cerrno>

#include "base/text.hpp"

namespace kedge::fs {
namespace {

std::string_view remedy_for(int system_errno) noexcept {
  switch (system_errno) {
    case ENOENT: return "there is no such file or directory; check the path";
    case ENOSPC: return "no space or no inodes left; free some or choose another location";
    case EDQUOT: return "this user's quota is used up; free some space or request a larger quota";
    case EMFILE:
    case ENFILE: return "too many open files; raise the limit (ulimit -n)";
    case ENOMEM: return "out of memory; request more memory or use a smaller store";
    case EFBIG: return "the file would exceed the maximum file size; raise the limit (ulimit -f)";
    case ELOOP: return "it is a symbolic link, which is not followed; remove it or give the real path";
    case EISDIR: return "it is a directory, but a regular file is needed; move it away";
    case ENOTDIR: return "a component of the path is not a directory; check the path";
    case EACCES:
    case EPERM: return "permission denied; check owner and permissions";
    case EROFS: return "the filesystem is read-only; choose another location or remount it";
    case ESTALE: return "stale handle: the file or its filesystem is gone; check the mount";
    case EXDEV: return "the two paths are on different filesystems; put them on one";
    case EIO: return "the storage reports an I/O error; check the kernel log";
    default: return "the system call failed";
  }
}

}  // namespace

ErrorCode error_code_of(int system_errno) noexcept {
  switch (system_errno) {
    case ENOENT: return ErrorCode::not_found;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case ENOLCK:
    case ENOMEM: return ErrorCode::no_space;
    default: return ErrorCode::io;
  }
}

bool is_access_error(int system_errno) noexcept {
  return system_errno == EACCES || system_errno == EPERM || system_errno == ENOTDIR;
}

void throw_system_error(std::string_view action, const std::string& path, int system_errno) {
  throw Error(Failure{error_code_of(system_errno), compose("cannot {}: {}", action, remedy_for(system_errno)), -1, path,
                      system_errno});
}

void throw_truncated(const std::string& path, std::uint64_t offset, std::uint64_t length, std::uint64_t size_bytes) {
  throw Error(
      Failure{ErrorCode::corrupt,
              compose("the file is truncated: {} bytes at offset {} are needed, but it ends at {}; treat it as lost",
                      length, offset, size_bytes),
              -1, path, 0});
}

void require_within(const std::string& path, std::uint64_t offset, std::uint64_t length, std::uint64_t size_bytes) {
  if (offset > size_bytes || length > size_bytes - offset) throw_truncated(path, offset, length, size_bytes);
}

}  // namespace kedge::fs
