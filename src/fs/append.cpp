// FileSystem::append for file systems without an append of their own.
#include "fs/file_system.hpp"

namespace kedge::fs {

void FileSystem::append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode) {
  std::unique_ptr<File> file = create(path, mode);
  if (!file) file = open(path, Access::read_write);
  file->write_with_crc(file->status().size_bytes, bytes, 0);
}

}  // namespace kedge::fs
