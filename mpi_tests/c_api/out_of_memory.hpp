// Memory that runs out in one thread. Replaces operator new of the whole test program.
#pragma once

namespace kedge::faults {

/// While it lives, this thread's allocations after the first `after` fail.
class OutOfMemory {
 public:
  explicit OutOfMemory(long after) noexcept;
  ~OutOfMemory();
  OutOfMemory(const OutOfMemory&) = delete;
  OutOfMemory& operator=(const OutOfMemory&) = delete;

  /// Whether no allocation failed yet, nor would the next.
  [[nodiscard]] static bool still_some() noexcept;
};

}  // namespace kedge::faults
