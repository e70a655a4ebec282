#include <liburing.h>

#include <cerrno>

#include "fs/io_queue.hpp"

namespace kedge::fs {
namespace {

class UringQueue final : public IoQueue {
 public:
  explicit UringQueue(io_uring ring) noexcept : ring_(ring) {}
  ~UringQueue() override { ::io_uring_queue_exit(&ring_); }

  int start_write(unsigned slot, int descriptor, const std::byte* data, std::size_t length,
                  std::uint64_t offset) noexcept override {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) return EBUSY;
    ::io_uring_prep_write(entry, descriptor, data, static_cast<unsigned>(length), offset);
    ::io_uring_sqe_set_data64(entry, slot);
    // Whatever submit returns, the entry is in the ring: the next submit, or wait_for_write(), passes it to the kernel.
    int submitted = 0;
    do {
      submitted = ::io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
    return 0;
  }

  Completion wait_for_write() noexcept override {
    io_uring_cqe* entry = nullptr;
    int error = 0;
    do {
      (void)::io_uring_submit(&ring_);
      error = ::io_uring_wait_cqe(&ring_, &entry);
    } while (error == -EINTR || error == -EAGAIN);
    if (error != 0) return {0, error, true};
    const Completion done{static_cast<unsigned>(::io_uring_cqe_get_data64(entry)), entry->res, false};
    ::io_uring_cqe_seen(&ring_, entry);
    return done;
  }

 private:
  io_uring ring_;
};

}  // namespace

std::unique_ptr<IoQueue> make_uring_queue(unsigned depth) {
  io_uring ring{};
  const int error = ::io_uring_queue_init(depth, &ring, 0);
  if (error != 0) {
    errno = -error;
    return nullptr;
  }
  return std::make_unique<UringQueue>(ring);
}

}  // namespace kedge::fs
