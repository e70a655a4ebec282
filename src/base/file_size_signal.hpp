// A file that would grow beyond its limit (ulimit -f) is an error like any other, and no signal that ends the process.
#pragma once

#include <csignal>

namespace kedge {

/// Blocks SIGXFSZ in this thread for its own lifetime: a write beyond RLIMIT_FSIZE fails with EFBIG instead. Costs one
/// system call where there is no limit.
class ScopedFileSizeSignalBlock {
 public:
  ScopedFileSizeSignalBlock() noexcept;
  ~ScopedFileSizeSignalBlock();
  ScopedFileSizeSignalBlock(const ScopedFileSizeSignalBlock&) = delete;
  ScopedFileSizeSignalBlock& operator=(const ScopedFileSizeSignalBlock&) = delete;

 private:
  bool has_blocked_ = false;
  sigset_t previous_mask_{};
};

}  // namespace kedge
