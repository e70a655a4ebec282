#include "base/file_size_signal.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <ctime>

namespace kedge {
namespace {

sigset_t only_file_size() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

}  // namespace

FileSizeSignalBlocked::FileSizeSignalBlocked() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return;
  const sigset_t signals = only_file_size();
  if (::pthread_sigmask(SIG_BLOCK, &signals, &before_) != 0) return;
  blocked_ = sigismember(&before_, SIGXFSZ) == 0;
}

/// The kernel sends it to the thread that writes, where it now waits: it is taken before it could be delivered.
FileSizeSignalBlocked::~FileSizeSignalBlocked() {
  if (!blocked_) return;
  const int error = errno;
  const sigset_t signals = only_file_size();
  const timespec at_once{};
  while (::sigtimedwait(&signals, nullptr, &at_once) == -1 && errno == EINTR) {
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace kedge
