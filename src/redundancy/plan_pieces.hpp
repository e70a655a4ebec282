// Pure. The pieces into which stripes are divided, computed alike by every member of a set.
#pragma once

#include <cstdint>

namespace kedge::redundancy {

/// Sizes of the messages: tests choose others.
struct PieceSettings {
  std::uint64_t bytes = 0;  ///< of a piece; 0 is automatic
  std::uint32_t depth = 4;  ///< steps in progress at once
};

/// Limit of one member's message memory, unless the user sets piece_bytes.
inline constexpr std::uint64_t kExchangeBufferBytes = std::uint64_t{13} << 20U;
/// Limit for any piece_bytes: in large sets, large pieces would need more memory than exists.
inline constexpr std::uint64_t kMaxBufferBytes = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kMinPieceBytes = std::uint64_t{64} << 10U;
inline constexpr std::uint64_t kMaxPieceBytes = std::uint64_t{1} << 20U;

/// Piece size, a multiple of 4 KiB: the user's, as far as kMaxBufferBytes allows, or one that keeps `buffers` per step
/// in progress, plus two, within kExchangeBufferBytes, but at least kMinPieceBytes.
[[nodiscard]] std::uint64_t piece_bytes(std::uint64_t buffers, const PieceSettings& settings);

/// `length` bytes at `begin`, relative to a stripe or an input.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

/// Piece `number` of `total` bytes; empty beyond the end.
[[nodiscard]] constexpr Piece piece_of(std::uint64_t number, std::uint64_t piece_bytes, std::uint64_t total) noexcept {
  const std::uint64_t begin = number * piece_bytes;
  if (begin >= total) return {total, 0};
  return {begin, total - begin < piece_bytes ? total - begin : piece_bytes};
}

}  // namespace kedge::redundancy
