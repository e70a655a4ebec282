// A file that would grow beyond its limit (ulimit -f) is an error like any other, and no signal that ends the process.
#pragma once

#include <csignal>

namespace kedge {

/// While it lives, a write by this thread beyond RLIMIT_FSIZE fails with EFBIG and raises no SIGXFSZ. Costs one system
/// call where there is no limit.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() noexcept;
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  bool blocked_ = false;  ///< by this object
  sigset_t before_{};
};

}  // namespace kedge
