// Copies whole files in pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fs/file_system.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {

/// For disks and parallel filesystems: large writes, several of which bypass the page cache at once. Between files in
/// memory, kCachedPieceBytes is a quarter faster.
inline constexpr std::uint64_t kCopyPieceBytes = std::uint64_t{4} << 20U;

/// Local. Writes `bytes` to the start of `to` and returns their CRC32C.
inline std::uint32_t copy(std::span<const std::byte> bytes, ByteAccess& to) {
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < bytes.size(); at += kCopyPieceBytes) {
    crc = to.write_with_crc(at, bytes.subspan(at, std::min<std::uint64_t>(kCopyPieceBytes, bytes.size() - at)), crc);
  }
  return crc;
}

/// Local. Calls take(offset, piece) for the first `size_bytes` of `from`.
template <class Take>
void read_in_pieces(ByteAccess& from, std::uint64_t size_bytes, std::uint64_t piece_bytes, Take&& take) {
  std::vector<std::byte> piece(std::min(piece_bytes, size_bytes));
  for_each_piece(size_bytes, piece_bytes, [&](std::uint64_t at, std::uint64_t length) {
    const auto part = std::span(piece).first(length);
    from.read(at, part);
    take(at, part);
  });
}

/// Local. Copies the first `size_bytes` of `from` to the start of `to` and returns their CRC32C.
inline std::uint32_t copy(ByteAccess& from, ByteAccess& to, std::uint64_t size_bytes,
                          std::uint64_t piece_bytes = kCopyPieceBytes) {
  std::uint32_t crc = 0;
  read_in_pieces(from, size_bytes, piece_bytes,
                 [&](std::uint64_t at, auto part) { crc = to.write_with_crc(at, part, crc); });
  return crc;
}

/// Local. Copies the first `size_bytes` of `from` to the start of `to` without a checksum: for files that are verified
/// when they are used.
inline void copy_unchecked(ByteAccess& from, ByteAccess& to, std::uint64_t size_bytes) {
  read_in_pieces(from, size_bytes, kCopyPieceBytes, [&](std::uint64_t at, auto part) { to.write(at, part); });
}

}  // namespace kedge::fs
