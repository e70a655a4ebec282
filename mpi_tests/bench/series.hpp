// Statistics of one row. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace kedge_bench {

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;

  /// How far apart the extremes are, as a part of the median.
  [[nodiscard]] double spread() const noexcept { return median > 0 ? (max - min) / median : 0; }
};

/// The median of an even number of values is the mean of the two in the middle. Throws std::invalid_argument if there
/// are none.
[[nodiscard]] Summary summarize(std::vector<double> values);

/// Round by round, value over reference. Throws std::invalid_argument if their numbers differ.
[[nodiscard]] std::vector<double> ratios(const std::vector<double>& values, const std::vector<double>& reference);

/// A baseline that spreads by more than this says nothing.
inline constexpr double kMostSpread = 0.15;
/// Fewer rounds than that say nothing either.
inline constexpr std::size_t kLeastRounds = 7;

}  // namespace kedge_bench
