#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "drain/placement.hpp"
#include "drain/survivors.hpp"

namespace kedge::drain {
namespace {

using Hosts = std::vector<int>;

TEST(PlaceRanks, EachWhereItsContainerIs) {
  EXPECT_EQ(place_ranks(4, 2, std::vector<Sighting>{{1, 0}, {1, 1}, {0, 2}, {0, 3}}), (Hosts{1, 1, 0, 0}));
  EXPECT_EQ(place_ranks(3, 1, {}), (Hosts{0, 0, 0}));
  EXPECT_EQ(place_ranks(0, 3, {}), Hosts{});
}

// All processes of a node see the same store.
TEST(PlaceRanks, ProcessesOfANodeShareItsRanks) {
  std::vector<Sighting> seen;
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    for (const int process : {0, 1, 2}) seen.push_back({process, rank});
  }
  EXPECT_EQ(place_ranks(6, 5, seen), (Hosts{0, 1, 2, 0, 1, 2}));
  std::shuffle(seen.begin(), seen.end(), std::mt19937(7));  // NOLINT(cert-msc51-cpp): the same each time
  EXPECT_EQ(place_ranks(6, 5, seen), (Hosts{0, 1, 2, 0, 1, 2}));
}

TEST(PlaceRanks, LostRanksGoToWhoHasTheFewest) {
  EXPECT_EQ(place_ranks(6, 3, std::vector<Sighting>{{0, 0}, {0, 1}, {1, 4}, {1, 5}}), (Hosts{0, 0, 2, 2, 1, 1}));
}

TEST(PlaceRanks, WhatIsNoRankOfTheJobIsLeftOut) {
  EXPECT_EQ(place_ranks(2, 2, std::vector<Sighting>{{1, 7}, {1, 1}}), (Hosts{0, 1}));
}

TEST(NodePattern, FitsAnyNode) {
  EXPECT_TRUE(fits_node_pattern("node0", "{node}"));
  EXPECT_TRUE(fits_node_pattern("k-node0-x", "k-{node}-x"));
  EXPECT_TRUE(fits_node_pattern("plain", "plain"));
  EXPECT_FALSE(fits_node_pattern("k--x", "k-{node}-x"));
  EXPECT_FALSE(fits_node_pattern("k-x", "k-{node}-x"));
  EXPECT_FALSE(fits_node_pattern("other-node0-x", "k-{node}-x"));
  EXPECT_FALSE(fits_node_pattern("plain2", "plain"));
}

}  // namespace
}  // namespace kedge::drain
