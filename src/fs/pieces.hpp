// Divides long transfers into pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kedge::fs {

/// Fits the L2 cache: the checksum finds the bytes there that were just copied.
inline constexpr std::size_t kCachedPieceBytes = std::size_t{256} << 10U;

/// Calls step(offset, length) for consecutive pieces of at most `piece_bytes`.
template <class Step>
void for_each_piece(std::uint64_t length, std::uint64_t piece_bytes, Step&& step) {
  for (std::uint64_t done = 0; done < length; done += piece_bytes) step(done, std::min(piece_bytes, length - done));
}

}  // namespace kedge::fs
