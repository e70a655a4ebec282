// How kedge show says that ranks divided a global array: in rows, in a grid, with holes and with elements saved twice.
#include "tools/division.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kedge::tools::division_test {
namespace {

struct At {
  Shape offset;
  Shape shape;
};

Division division(const Shape& all, const std::vector<At>& boxes, bool is_complete = true) {
  std::vector<SavedBlock> blocks;
  for (const At& one : boxes) {
    blocks.push_back({static_cast<std::uint32_t>(blocks.size()), arrays::box_at(one.offset, one.shape)});
  }
  return describe_division(all, blocks, is_complete);
}

TEST(DivisionOf, RowsColumnsAndElements) {
  EXPECT_EQ(division({8, 6}, {{{0, 0}, {4, 6}}, {{4, 0}, {4, 6}}}).words, "2 blocks of 4 rows");
  EXPECT_EQ(division({8, 6}, {{{0, 0}, {8, 1}}, {{0, 1}, {8, 3}}, {{0, 4}, {8, 2}}}).words,
            "3 blocks of 1 to 3 columns");
  EXPECT_EQ(division({5}, {{{3}, {2}}, {{0}, {3}}}).words, "2 blocks of 2 to 3 elements");
  EXPECT_EQ(division({2, 2, 2}, {{{0, 0, 0}, {2, 2, 1}}, {{0, 0, 1}, {2, 2, 1}}}).words,
            "2 blocks, 1 each along axis 2");
  EXPECT_EQ(division({8, 6}, {{{0, 0}, {8, 6}}}).words, "whole, by rank 0");
  EXPECT_EQ(division({0, 6}, {}).words, "no elements");
}

TEST(DivisionOf, AGrid) {
  std::vector<At> boxes;
  for (const std::uint64_t row : {0U, 3U}) {
    for (const std::uint64_t column : {0U, 2U, 4U}) boxes.push_back({{row, column}, {row == 0 ? 3U : 5U, 2}});
  }
  const Division grid = division({8, 6}, boxes);
  EXPECT_EQ(grid.words, "a grid of 2 x 3 blocks");
  EXPECT_FALSE(grid.hole);
  EXPECT_EQ(grid.missing, 0U);
  boxes.erase(boxes.begin() + 4);
  const Division lacks_one = division({8, 6}, boxes);
  EXPECT_EQ(lacks_one.words, "5 blocks, no grid");
  EXPECT_EQ(lacks_one.missing, 10U);
  ASSERT_TRUE(lacks_one.hole);
  EXPECT_EQ(indices_text(*lacks_one.hole, 2), "(3, 2)");
}

TEST(DivisionOf, BlocksOfManySizesWithoutAHole) {
  const Division irregular = division({4, 4}, {{{0, 0}, {2, 3}}, {{0, 3}, {4, 1}}, {{2, 0}, {2, 3}}});
  EXPECT_EQ(irregular.words, "3 blocks, no grid");
  EXPECT_FALSE(irregular.hole);
  EXPECT_FALSE(irregular.overlap);
}

TEST(DivisionOf, HolesAtTheEdges) {
  const Division begin = division({8, 6}, {{{2, 0}, {3, 6}}, {{5, 0}, {3, 6}}});
  EXPECT_EQ(begin.words, "2 blocks of 3 rows, from (2, 0) to (7, 5)");
  EXPECT_EQ(begin.missing, 12U);
  EXPECT_EQ(indices_text(begin.hole.value(), 2), "(0, 0)");
  EXPECT_EQ(division({8, 6}, {}).missing, 48U);
  const Division some = division({8, 6}, {{{2, 0}, {3, 6}}, {{5, 0}, {3, 6}}}, false);
  EXPECT_EQ(some.words, begin.words);
  EXPECT_FALSE(some.hole) << "other nodes have the rest";
  EXPECT_EQ(some.missing, 0U);
}

TEST(DivisionOf, WhatWasSavedTwice) {
  const Division twice = division({8, 6}, {{{0, 0}, {4, 6}}, {{3, 0}, {4, 6}}});
  ASSERT_TRUE(twice.overlap);
  EXPECT_EQ(*twice.overlap, (std::pair<std::size_t, std::size_t>(0, 1)));
  EXPECT_EQ(twice.missing, 0U) << "it is not known how many";
  EXPECT_EQ(indices_text(twice.hole.value(), 2), "(7, 0)");
  const Division same = division({8, 6}, {{{0, 0}, {4, 6}}, {{4, 0}, {4, 6}}, {{4, 0}, {4, 6}}});
  ASSERT_TRUE(same.overlap);
  EXPECT_EQ(*same.overlap, (std::pair<std::size_t, std::size_t>(1, 2)));
}

}  // namespace
}  // namespace kedge::tools::division_test
