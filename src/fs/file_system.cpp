#include "fs/file_system.hpp"

#include <vector>

#include "checksum/copy_with_checksum.hpp"
#include "fs/pieces.hpp"

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

}  // namespace kedge::fs
