// Asynchronous writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace kedge::fs {

/// Up to `depth` writes at once, identified by slot. For one thread at a time.
class IoQueue {
 public:
  struct Completion {
    unsigned slot = 0;
    int result = 0;              ///< bytes written, perhaps fewer than requested, or a negative errno
    bool is_queue_lost = false;  ///< the queue failed with `result`: the state of all its writes is unknown
  };

  IoQueue() = default;
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;
  virtual ~IoQueue() = default;

  /// Starts a write; returns 0 or an errno. The memory must stay valid until wait_for_write() returns the slot.
  [[nodiscard]] virtual int start_write(unsigned slot, int descriptor, const std::byte* data, std::size_t length,
                                        std::uint64_t offset) noexcept = 0;
  /// Waits for one of the started writes.
  [[nodiscard]] virtual Completion wait_for_write() noexcept = 0;
};

/// Makes a queue; null with errno if the system refuses.
using MakeQueue = std::function<std::unique_ptr<IoQueue>(unsigned depth)>;

/// A queue of io_uring; null with ENOSYS if the kernel has none, EPERM if the container forbids it.
[[nodiscard]] std::unique_ptr<IoQueue> make_uring_queue(unsigned depth);

}  // namespace kedge::fs
