// Writes that are under way in the kernel while this thread goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace kedge::fs {

/// Up to `depth` writes at once, each with the number of its slot. One thread at a time.
class IoQueue {
 public:
  struct Completion {
    unsigned slot = 0;
    int result = 0;     ///< bytes written, which may be fewer than asked, or a negative errno
    bool lost = false;  ///< the queue itself failed with `result`: what is under way cannot be known any more
  };

  IoQueue() = default;
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;
  virtual ~IoQueue() = default;

  /// Starts a write; 0 or an errno. The memory must stay until wait() gave the slot back.
  [[nodiscard]] virtual int start(unsigned slot, int descriptor, const std::byte* data, std::size_t length,
                                  std::uint64_t offset) noexcept = 0;
  /// Waits for one that was started.
  [[nodiscard]] virtual Completion wait() noexcept = 0;
};

/// Makes a queue: null where the system refuses one, errno tells why.
using MakeQueue = std::function<std::unique_ptr<IoQueue>(unsigned depth)>;

/// By io_uring. Null with ENOSYS or EPERM where the kernel has none or the container forbids it.
[[nodiscard]] std::unique_ptr<IoQueue> make_uring_queue(unsigned depth);

}  // namespace kedge::fs
