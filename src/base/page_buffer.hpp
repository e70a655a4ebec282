// Large memory for one piece of work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kedge {

/// Whole pages straight from the system, and back to it at the end: malloc would keep freed memory, with holes, and a
/// rank that works in turns would need twice as much. Page-aligned, and zero at first.
class PageBuffer {
 public:
  PageBuffer() = default;
  PageBuffer(PageBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~PageBuffer();

  /// Returns at least `size_bytes`, valid until the next call; growing loses the content. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> ensure_size(std::uint64_t size_bytes);

 private:
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace kedge
