// Descriptors, files and mappings of the real file system.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "fs/direct_writer.hpp"
#include "fs/file_system.hpp"

namespace kedge::fs {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

[[nodiscard]] FileStatus to_file_status(const struct stat& info) noexcept;

/// fstat that throws Error.
[[nodiscard]] struct stat stat_descriptor(const Descriptor& descriptor, const std::string& path);

/// Takes over the descriptor of a regular file. enable_direct_writes() uses `direct_writer`.
[[nodiscard]] std::unique_ptr<File> make_posix_file(Descriptor descriptor, std::string path, Access access,
                                                    std::shared_ptr<DirectWriter> direct_writer);

/// Takes over a mapping of the file's first `size_bytes`; `data` may be null if there are none.
[[nodiscard]] std::unique_ptr<Mapping> make_posix_mapping(std::byte* data, std::size_t size_bytes, Access access,
                                                          std::string path);

}  // namespace kedge::fs
