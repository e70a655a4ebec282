#include "fs/file_system.hpp"

#include <cerrno>

#include "checksum/copy_with_checksum.hpp"
#include "fs/transfer.hpp"
#include "kedge/error.hpp"

namespace kedge::fs {

std::uint32_t ByteAccess::write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                                    std::uint32_t crc) {
  const std::uint64_t size = from.front().size();
  std::vector<std::byte> sum(std::min<std::uint64_t>(size, kCachedPieceBytes));
  std::vector<std::span<const std::byte>> parts(from.size());
  for_each_piece(size, kCachedPieceBytes, [&](std::uint64_t at, std::uint64_t length) {
    std::ranges::transform(from, parts.begin(), [&](const auto& source) { return source.subspan(at, length); });
    const auto piece = std::span(sum).first(length);
    crc = xor_in_caches_with_checksum(piece, parts, crc);
    write(offset + at, piece);
  });
  return crc;
}

// For a file system that has no way of its own.
void FileSystem::append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode) {
  std::unique_ptr<File> file = create(path, mode);
  if (!file) file = open(path, Access::read_write);
  file->write_with_crc(file->status().size_bytes, bytes, 0);
}

void sync_parent_directories(FileSystem& file_system, const std::string& path) {
  const std::string absolute = file_system.canonical(path);
  for (std::size_t slash = 0; slash != std::string::npos; slash = absolute.find('/', slash + 1)) {
    try {
      file_system.sync_directory(slash == 0 ? "/" : absolute.substr(0, slash));
    } catch (const Error& error) {
      const int reason = error.failure().system_errno;
      // EINVAL, EROFS: a filesystem without stable names (proc, a read-only root) has no name made by Kedge.
      if (reason != EACCES && reason != EPERM && reason != EINVAL && reason != EROFS) throw;
    }
  }
}

}  // namespace kedge::fs
