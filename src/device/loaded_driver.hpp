// Detects whether the application has loaded the CUDA driver.
#pragma once

#include <atomic>
#include <cstdint>

namespace kedge::device {

/// Thread-safe. Called for each region, so it searches again only after the process has loaded another library: a
/// search tries every library directory.
class LoadedDriver {
 public:
  /// The driver's handle, never closed; null if the driver is not loaded.
  [[nodiscard]] void* handle();

 private:
  std::atomic<void*> handle_ = nullptr;
  std::atomic<std::uint64_t> load_count_at_last_search_ = 0;  ///< number of library loads at the last search
};

}  // namespace kedge::device
