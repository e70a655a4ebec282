// Large memory that a piece of work has for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kedge {

/// Whole pages straight from the system, and back to it at the end: malloc keeps what was freed, with holes, and a rank
/// that works in turns would hold twice what it needs. Aligned as any codec likes it; zeros at first.
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

  /// At least so many bytes, valid until more are asked for: the buffer grows without its content. Throws
  /// std::bad_alloc.
  [[nodiscard]] std::span<std::byte> room(std::uint64_t size_bytes);

 private:
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace kedge
