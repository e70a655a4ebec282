// How messages list ranks: runs of them as one, and a few runs of many.
#include "commits/commit_names.hpp"

#include <gtest/gtest.h>

namespace kedge::commits {
namespace {

std::string text_of(const std::vector<std::uint32_t>& ranks) { return ranks_text(ranks); }

TEST(RanksText, NamesRunsOfRanks) {
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(text_of({4}), "4");
  EXPECT_EQ(text_of({4, 5}), "4, 5");
  EXPECT_EQ(text_of({0, 1, 2, 3, 6, 8, 9}), "0 to 3, 6, 8, 9");
}

TEST(RanksText, NamesAFewRunsOfMany) {
  EXPECT_EQ(text_of({0, 2, 4, 6, 8, 10, 12, 14}), "0, 2, 4, 6, 8, 10, 12, 14");
  EXPECT_EQ(text_of({0, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18}), "0, 2, 4, 6, 8, 10, 12, 14 and 3 more");
}

}  // namespace
}  // namespace kedge::commits
