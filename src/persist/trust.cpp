// Whose files on a prefix are trusted.
#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

using Kind = fs::FileStatus::Kind;

void require_own(const fs::FileSystem& file_system, const fs::FileStatus& status, const std::string& path) {
  if (status.owner != file_system.user()) {
    refuse(ErrorCode::io,
           compose("it belongs to user {}, but persistent.trust = self trusts only files of user {}; set "
                   "persistent.trust = group if you share the prefix with a group, or any to trust everybody",
                   status.owner, file_system.user()),
           path);
  }
  if ((status.mode & (fs::kGroupWrites | fs::kOthersWrite)) == 0) return;
  refuse(ErrorCode::io,
         compose("others can write to it (mode {:04o}), but persistent.trust = self trusts only files that nobody else "
                 "can change; run chmod go-w on it{}",
                 status.mode,
                 (status.mode & fs::kOthersWrite) == 0 ? ", or set persistent.trust = group if that is intended" : ""),
         path);
}

void require_groups(const fs::FileSystem& file_system, const fs::FileStatus& status, const std::string& path) {
  if (status.owner != file_system.user() && !file_system.in_group(status.group)) {
    refuse(ErrorCode::io,
           compose("it belongs to user {} and group {}, but persistent.trust = group trusts only files of yours or of "
                   "your groups; have its group changed (chgrp), or set persistent.trust = any",
                   status.owner, status.group),
           path);
  }
  if ((status.mode & fs::kOthersWrite) == 0) return;
  refuse(
      ErrorCode::io,
      compose("every user can write to it (mode {:04o}) and persistent.trust = group trusts only what nobody outside "
              "the group can change; run chmod o-w on it",
              status.mode),
      path);
}

}  // namespace

void require_trusted(fs::FileSystem& file_system, const std::string& path, Trust trust) {
  const auto status = file_system.status(path);
  if (!status) refuse(ErrorCode::not_found, "no such file or directory; check the path", path);
  if (status->kind == Kind::link)
    refuse(ErrorCode::io, "it is a symbolic link, which is not followed; replace it by the file or directory itself",
           path);
  if (status->kind == Kind::other) refuse(ErrorCode::io, "it is neither a file nor a directory; move it away", path);
  switch (trust) {
    case Trust::self: return require_own(file_system, *status, path);
    case Trust::group: return require_groups(file_system, *status, path);
    case Trust::any: return;
  }
}

void require_trusted_parent(fs::FileSystem& file_system, const std::string& path, Trust trust) {
  const auto status = file_system.status(path);
  if (!status) refuse(ErrorCode::not_found, "no such file or directory; check the path", path);
  if (status->kind != Kind::directory) refuse(ErrorCode::io, "it is not a directory; check the path", path);
  if (trust == Trust::any || (status->mode & fs::kSticky) != 0) return;
  if ((status->mode & fs::kOthersWrite) != 0) {
    refuse(ErrorCode::io,
           compose(
               "every user can replace what is in it (mode {:04o}); run chmod o-w on it, or set persistent.trust = any",
               status->mode),
           path);
  }
  if (trust == Trust::group || (status->mode & fs::kGroupWrites) == 0) return;
  refuse(ErrorCode::io,
         compose("its group can replace what is in it (mode {:04o}); set persistent.trust = group if that is intended",
                 status->mode),
         path);
}

}  // namespace kedge::persist
