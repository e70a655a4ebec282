// Turns SIGBUS in mapped files into a flag that callers check.
#pragma once

#include <cstddef>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Guards a mapping; create it before the first use and destroy it before munmap. Accessing a page that has no storage
/// any more (another process truncated the file, or its device or memory failed) would normally end the process with
/// SIGBUS. Instead, the mapping from that page on becomes private memory of zeros, whichever code accessed it, MPI's
/// included, and is_intact() returns false: check it after each use. A system call that accesses such memory fails with
/// EFAULT and changes nothing.
///
/// The first guard installs a SIGBUS handler, which stays. It passes faults outside of
/// guarded ranges to the previous handler, or lets them kill the process. Guards do not work in programs that later
/// install a handler without calling the previous one, in threads that block SIGBUS, and beyond 4,096 ranges at once.
class GuardedRange {
 public:
  /// `begin` must be page-aligned.
  GuardedRange(std::byte* begin, std::size_t size_bytes, Access access) noexcept;
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

  [[nodiscard]] bool is_intact() const noexcept;

 private:
  struct Entry* entry_ = nullptr;  ///< null if the range is empty or the table full
};

}  // namespace kedge::fs
