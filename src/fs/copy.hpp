// Whole files from one place to another, in pieces, with the CRC32C of what passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::fs {

inline constexpr std::uint64_t kCopyPieceBytes = std::uint64_t{4} << 20U;

/// Local. Writes `bytes` to the start of `to`; their CRC32C.
inline std::uint32_t copy(std::span<const std::byte> bytes, ByteAccess& to) {
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < bytes.size(); at += kCopyPieceBytes) {
    crc = to.copy_in(at, bytes.subspan(at, std::min<std::uint64_t>(kCopyPieceBytes, bytes.size() - at)), crc);
  }
  return crc;
}

/// Local. Copies the first `size_bytes` of `from` to the start of `to`; the CRC32C of what was written.
inline std::uint32_t copy(ByteAccess& from, ByteAccess& to, std::uint64_t size_bytes,
                          std::uint64_t piece_bytes = kCopyPieceBytes) {
  std::vector<std::byte> piece(std::min(piece_bytes, size_bytes));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < size_bytes; at += piece_bytes) {
    const auto part = std::span(piece).first(std::min(piece_bytes, size_bytes - at));
    (void)from.copy_out(at, part, 0);
    crc = to.copy_in(at, part, crc);
  }
  return crc;
}

}  // namespace kedge::fs
