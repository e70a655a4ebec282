// Turns SIGBUS in mapped files into a flag that callers check.
#pragma once

#include <cstddef>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Guards a mapping: made before the first use, destroyed before munmap. A page that cannot be accessed (another
/// process truncated the file, or the storage or memory behind it failed) would end the process by SIGBUS. Instead the
/// mapping from there on becomes private memory of zeros, whichever code touched it, that of MPI too, and is_intact()
/// is false from then on: ask after each use. A system call that is given such memory fails with EFAULT instead, and
/// marks nothing.
///
/// The first one installs a handler for SIGBUS, which stays. Faults outside of these ranges are passed to the previous
/// handler, or kill the process. A program that later installs a handler of its own, without calling the previous one,
/// disables this, and so does a thread that blocks SIGBUS. More than 4,096 at once are not guarded.
class GuardedRange {
 public:
  /// `begin` lies at the beginning of a page.
  GuardedRange(std::byte* begin, std::size_t size_bytes, Access access) noexcept;
  ~GuardedRange();
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

  [[nodiscard]] bool is_intact() const noexcept;

 private:
  struct Entry* entry_ = nullptr;  ///< null if there is nothing to guard, or no room in the table
};

}  // namespace kedge::fs
