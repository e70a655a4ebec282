#include "base/file_size_signal.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <ctime>

namespace kedge {
namespace {

sigset_t file_size_signal_mask() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

}  // namespace

ScopedFileSizeSignalBlock::ScopedFileSizeSignalBlock() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return;
  const sigset_t signals = file_size_signal_mask();
  if (::pthread_sigmask(SIG_BLOCK, &signals, &previous_mask_) != 0) return;
  has_blocked_ = sigismember(&previous_mask_, SIGXFSZ) == 0;
}

/// The kernel sends it to the thread that writes, where it now waits: it is taken before it could be delivered.
ScopedFileSizeSignalBlock::~ScopedFileSizeSignalBlock() {
  if (!has_blocked_) return;
  const int error = errno;
  const sigset_t signals = file_size_signal_mask();
  const timespec at_once{};
  while (::sigtimedwait(&signals, nullptr, &at_once) == -1 && errno == EINTR) {
  }
  (void)::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  errno = error;
}

}  // namespace kedge
