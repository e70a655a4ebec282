// Medians, spreads and ratios of measured series: ratios are those of pairs, and nothing measured is an error.
#include "series.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kedge_bench::series_test {
namespace {

TEST(Series, MedianOfOddAndEvenNumbers) {
  EXPECT_DOUBLE_EQ(summarize({5, 1, 2}).median, 2);
  EXPECT_DOUBLE_EQ(summarize({5, 1, 2, 4}).median, 3);
  EXPECT_DOUBLE_EQ(summarize({5, 1, 2, 4}).min, 1);
  EXPECT_DOUBLE_EQ(summarize({5, 1, 2, 4}).max, 5);
}

TEST(Series, SpreadIsPartOfTheMedian) {
  EXPECT_DOUBLE_EQ(summarize({0.9, 1.0, 1.2}).spread(), 1.2 - 0.9);
  EXPECT_DOUBLE_EQ(summarize({2, 2, 2}).spread(), 0);
}

TEST(Series, RatiosAreOfPairsAndNotOfMedians) {
  EXPECT_EQ(ratios({1, 6, 2}, {2, 3, 4}), (std::vector<double>{0.5, 2, 0.5}));
  EXPECT_THROW((void)ratios({1}, {1, 2}), std::invalid_argument);
}

TEST(Series, NothingMeasuredIsAnErrorAndNoZero) { EXPECT_THROW((void)summarize({}), std::invalid_argument); }

}  // namespace
}  // namespace kedge_bench::series_test
