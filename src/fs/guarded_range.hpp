// Mapped files whose pages may fail under the process: SIGBUS becomes a question that can be asked.
#pragma once

#include <cstddef>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Stands for a mapping, from before it is used until before it is unmapped. A page of it that cannot be had (the file
/// was truncated by another process, the storage or the memory behind it failed) would end the process by SIGBUS.
/// Instead the mapping from there on becomes private memory of zeros, whoever touched it, MPI included, and is_intact()
/// says so from then on: ask after each use.
///
/// The first one installs a handler for SIGBUS, which stays. What it does not know goes to the handler before it, or
/// kills the process. A program that later installs its own without calling the one before takes this protection away,
/// and so does a thread that blocks SIGBUS.
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
