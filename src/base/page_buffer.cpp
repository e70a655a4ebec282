#include "base/page_buffer.hpp"

#include <sys/mman.h>

#include <new>

namespace kedge {

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

std::span<std::byte> PageBuffer::ensure_size(std::uint64_t size_bytes) {
  if (size_bytes > size_bytes_) {
    *this = PageBuffer();
    void* const data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    data_ = data;
    size_bytes_ = size_bytes;
  }
  return {static_cast<std::byte*>(data_), static_cast<std::size_t>(size_bytes)};
}

}  // namespace kedge
