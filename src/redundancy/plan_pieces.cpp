#include "redundancy/plan_pieces.hpp"

#include <algorithm>

namespace kedge::redundancy {
namespace {

bool makes_input_of(const Stripe& earlier, const Stripe& later) {
  return std::ranges::any_of(
      later.inputs, [&](const Input& input) { return input.member == earlier.target && input.part == earlier.part; });
}

}  // namespace

std::uint64_t piece_bytes(std::uint64_t members, std::uint64_t budget_bytes) {
  constexpr std::uint64_t kUnit = 4096;
  const std::uint64_t pieces = kStepsAhead * (std::max<std::uint64_t>(members, 2) - 1) + 2;
  return std::clamp(budget_bytes / pieces / kUnit * kUnit, kLeastPieceBytes, kMostPieceBytes);
}

std::vector<std::size_t> waves(std::span<const Stripe> stripes) {
  std::vector<std::size_t> lengths;
  std::size_t first = 0;
  for (std::size_t next = 0; next < stripes.size(); ++next) {
    const auto wave = stripes.subspan(first, next - first);
    const bool apart = std::ranges::any_of(wave, [&](const Stripe& earlier) {
      return earlier.target == stripes[next].target || makes_input_of(earlier, stripes[next]);
    });
    if (apart || lengths.empty()) {
      lengths.push_back(0);
      first = next;
    }
    ++lengths.back();
  }
  return lengths;
}

}  // namespace kedge::redundancy
