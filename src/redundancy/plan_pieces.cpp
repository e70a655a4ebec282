#include "redundancy/plan_pieces.hpp"

#include <algorithm>

namespace kedge::redundancy {

std::uint64_t piece_bytes(std::uint64_t buffers, const PieceSettings& settings) {
  constexpr std::uint64_t kUnit = 4096;
  const std::uint64_t pieces = settings.depth * std::max<std::uint64_t>(buffers, 1) + 2;
  if (settings.bytes != 0) return std::min(settings.bytes, kMaxBufferBytes / pieces);
  return std::clamp(kExchangeBufferBytes / pieces / kUnit * kUnit, kMinPieceBytes, kMaxPieceBytes);
}

}  // namespace kedge::redundancy
