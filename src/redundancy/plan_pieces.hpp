// In which pieces stripes are walked: pure, and computed alike by every member of a set.
#pragma once

#include <cstdint>

namespace kedge::redundancy {

/// User's settings: options redundancy.piece_bytes and redundancy.depth.
struct PieceSettings {
  std::uint64_t bytes = 0;  ///< of a piece; 0: piece_bytes chooses
  std::uint32_t depth = 4;  ///< steps under way at once
};

/// Most memory for one member's messages in flight, if the user does not say otherwise.
inline constexpr std::uint64_t kExchangeBufferBytes = std::uint64_t{13} << 20U;
/// Most memory for them whatever the user says: large sets would multiply a large piece into more than there is.
inline constexpr std::uint64_t kMaxBufferBytes = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kMinPieceBytes = std::uint64_t{64} << 10U;
inline constexpr std::uint64_t kMaxPieceBytes = std::uint64_t{1} << 20U;

/// Bytes of a piece so that `buffers` of them for each step under way, and two more for the work on one of them, take
/// kExchangeBufferBytes at most; but never less than kMinPieceBytes. A multiple of 4 KiB. Or what the user wants, as
/// far as kMaxBufferBytes allow.
[[nodiscard]] std::uint64_t piece_bytes(std::uint64_t buffers, const PieceSettings& settings);

/// `length` bytes at `begin`, both counted from the begin of a stripe or of an input.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

/// The piece of this number of something of `total` bytes; empty behind its end.
[[nodiscard]] constexpr Piece piece_of(std::uint64_t number, std::uint64_t piece_bytes, std::uint64_t total) noexcept {
  const std::uint64_t begin = number * piece_bytes;
  if (begin >= total) return {total, 0};
  return {begin, total - begin < piece_bytes ? total - begin : piece_bytes};
}

}  // namespace kedge::redundancy
