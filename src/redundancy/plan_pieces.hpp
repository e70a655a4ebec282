// In which order stripes are walked, piece by piece: pure, and computed alike by every member of a set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

/// Steps under way at once.
inline constexpr std::uint64_t kStepsAhead = 4;
inline constexpr std::uint64_t kLeastPieceBytes = std::uint64_t{64} << 10U;
inline constexpr std::uint64_t kMostPieceBytes = std::uint64_t{512} << 10U;

/// Bytes of a piece so that those of all members but one, for all steps under way, and two more for the work on one
/// of them, take `budget_bytes` at most; but never less than kLeastPieceBytes. A multiple of 4 KiB.
[[nodiscard]] std::uint64_t piece_bytes(std::uint64_t members, std::uint64_t budget_bytes);

/// Lengths of the waves that the stripes are walked in. The stripes of a wave follow each other, have different
/// targets and need nothing that another one of them makes: so all targets can work at once.
[[nodiscard]] std::vector<std::size_t> waves(std::span<const Stripe> stripes);

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
