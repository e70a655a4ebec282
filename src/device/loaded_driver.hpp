// Whether the application has loaded the CUDA driver.
#pragma once

#include <atomic>
#include <cstdint>

namespace kedge::device {

/// From any thread. Asked for each region: as long as the process loads nothing, it asks the system no second time,
/// which would look for the library in every directory that may have it.
class LoadedDriver {
 public:
  /// The driver's handle, which is never closed; null if it is not loaded.
  [[nodiscard]] void* handle();

 private:
  std::atomic<void*> handle_ = nullptr;
  std::atomic<std::uint64_t> absent_after_ = 0;  ///< so many loads of libraries
};

}  // namespace kedge::device
