// How much private memory a rank takes beyond what it had: looked at every few milliseconds, so only in a round whose
// times do not count. Mapped files of the store are no private memory.
#pragma once

#include <cstdint>
#include <stop_token>
#include <thread>

namespace kedge_bench {

class MemoryWatch {
 public:
  /// Counts from so many bytes on.
  explicit MemoryWatch(std::uint64_t begin_bytes);
  /// Ends the watch. Bytes above those, the most that was seen.
  [[nodiscard]] std::uint64_t peak_bytes();

 private:
  std::uint64_t begin_bytes_;
  std::uint64_t most_bytes_;  // the thread's until it is joined
  std::jthread thread_;
};

}  // namespace kedge_bench
