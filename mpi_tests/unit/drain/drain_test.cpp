// What kedge drain plans: which process hosts which ranks, which stores a process sees, and which checkpoint and
// outputs of which number of ranks are flushed, in which order.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "drain/placement.hpp"
#include "drain/stores_content.hpp"

namespace kedge::drain::drain_test {
namespace {

using Hosts = std::vector<int>;

/// All of commit 5, of so many ranks.
SeenContainer seen(int process, std::uint32_t rank, std::uint32_t world_size, std::uint64_t generation = 5) {
  return {process, {generation, rank, world_size}};
}

TEST(LayOut, EachWhereItsContainerIs) {
  const std::vector<SeenContainer> all{seen(1, 0, 4), seen(1, 1, 4), seen(0, 2, 4), seen(0, 3, 4)};
  const Layout layout = place_ranks(all, 2);
  EXPECT_EQ(layout.hosts, (Hosts{1, 1, 0, 0}));
  EXPECT_EQ(layout.generation, 5U);
  EXPECT_EQ(layout.world_size, 4U);
  EXPECT_EQ(layout.present, 4U);
  const Layout none = place_ranks({}, 3);
  EXPECT_EQ(none.generation, 0U);
  EXPECT_TRUE(none.hosts.empty());
  EXPECT_EQ(newest_of({}).generation, 0U);
}

// All processes of a node see the same store.
TEST(LayOut, ProcessesOfANodeShareItsRanks) {
  std::vector<SeenContainer> all;
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    for (const int process : {0, 1, 2}) all.push_back(seen(process, rank, 6));
  }
  EXPECT_EQ(place_ranks(all, 5).hosts, (Hosts{0, 1, 2, 0, 1, 2}));
  std::shuffle(all.begin(), all.end(), std::mt19937(7));  // NOLINT(cert-msc51-cpp): the same each time
  EXPECT_EQ(place_ranks(all, 5).hosts, (Hosts{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(place_ranks(all, 5).present, 6U);
}

TEST(LayOut, LostRanksGoToWhoHasTheFewest) {
  const std::vector<SeenContainer> some{seen(0, 0, 6), seen(0, 1, 6), seen(1, 4, 6), seen(1, 5, 6)};
  EXPECT_EQ(place_ranks(some, 3).hosts, (Hosts{0, 0, 2, 2, 1, 1}));
  EXPECT_EQ(place_ranks(some, 3).present, 4U);
}

TEST(LayOut, WhatIsNoRankOfTheJobIsLeftOut) {
  EXPECT_EQ(place_ranks(std::vector<SeenContainer>{seen(1, 7, 2), seen(1, 1, 2)}, 2).hosts, (Hosts{0, 1}));
  EXPECT_EQ(place_ranks(std::vector<SeenContainer>{seen(1, 0, 3, 4), seen(1, 1, 2)}, 2).hosts, (Hosts{0, 1}));
}

// A job that was killed between the seals of its ranks has a newest commit that never was.
TEST(LayOut, AWholeCommitCountsBeforeANewerOneThatIsNot) {
  std::vector<SeenContainer> all{seen(0, 0, 2, 4), seen(1, 1, 2, 4), seen(0, 0, 2, 5)};
  EXPECT_EQ(place_ranks(all, 2).generation, 4U);
  EXPECT_EQ(place_ranks(all, 2).present, 2U);
  EXPECT_EQ(newest_of(all).generation, 5U);
  all.erase(all.begin());
  EXPECT_EQ(place_ranks(all, 2).generation, 5U);
  EXPECT_EQ(place_ranks(all, 2).present, 1U);
  EXPECT_EQ(place_ranks(all, 2).hosts, (Hosts{0, 1})) << "a rank works where the newest that it has is";
}

TEST(MissingOn, NewerCheckpointsAndOutputsThatAreNotThere) {
  const auto output = [](std::uint64_t generation) { return SeenContainer{0, {generation, 0, 1, 1, true}}; };
  const std::vector<SeenContainer> all{seen(0, 0, 1, 4), output(5), seen(0, 0, 1, 6), output(7), seen(0, 0, 1, 8)};
  const auto generations = [&](const PrefixState& prefix) {
    std::vector<std::uint64_t> found;
    for (const SeenContainer& one : find_missing(prefix, all)) found.push_back(one.container.generation);
    return found;
  };
  using Generations = std::vector<std::uint64_t>;
  EXPECT_EQ(generations({}), (Generations{4, 5, 6, 7, 8}));
  EXPECT_EQ(generations({6, {5}}), (Generations{7, 8})) << "an older output counts as any";
  EXPECT_EQ(generations({8, {7}}), (Generations{5}));
  EXPECT_EQ(generations({9, {5, 7}}), (Generations{}));
}

TEST(FlushPasses, TheNewestCheckpointFirstThenOutputsOfEachOtherNumberOfRanks) {
  const auto output = [](std::uint32_t world_size, std::uint64_t generation) {
    return SeenContainer{0, {generation, 0, world_size, 1, true}};
  };
  const auto told = [](const std::vector<SeenContainer>& all) {
    std::vector<std::string> words;
    for (const FlushPass& pass : plan_flush_passes(all, 1)) {
      words.push_back(std::to_string(pass.layout.world_size) + (pass.with_checkpoint() ? " with checkpoint" : ""));
      for (const std::uint64_t generation : pass.outputs) words.back() += " " + std::to_string(generation);
    }
    return words;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(told({}), Words{});
  EXPECT_EQ(told({seen(0, 0, 1, 4)}), Words{"1 with checkpoint"});
  EXPECT_EQ(told({seen(0, 0, 1, 4), output(1, 3), output(1, 5)}), Words{"1 with checkpoint 3 5"});
  EXPECT_EQ(told({seen(0, 0, 1, 4), output(3, 2), output(2, 7), output(2, 6)}),
            (Words{"1 with checkpoint", "2 6 7", "3 2"}));
  EXPECT_EQ(told({output(3, 2), output(2, 1)}), (Words{"3 2", "2 1"}));
  // The newest may be rebuilt although it lacks a container; if it cannot be, there is an older one.
  EXPECT_EQ(told({seen(0, 0, 3, 5), seen(0, 1, 3, 5), seen(0, 0, 4, 4), seen(0, 1, 4, 4), seen(0, 2, 4, 4),
                  seen(0, 3, 4, 4), output(4, 2)}),
            (Words{"3 with checkpoint", "4 with checkpoint 2"}));
}

TEST(NodePattern, FitsAnyNode) {
  EXPECT_TRUE(matches_node_pattern("node0", "{node}"));
  EXPECT_TRUE(matches_node_pattern("k-node0-x", "k-{node}-x"));
  EXPECT_TRUE(matches_node_pattern("plain", "plain"));
  EXPECT_FALSE(matches_node_pattern("k--x", "k-{node}-x"));
  EXPECT_FALSE(matches_node_pattern("k-x", "k-{node}-x"));
  EXPECT_FALSE(matches_node_pattern("other-node0-x", "k-{node}-x"));
  EXPECT_FALSE(matches_node_pattern("plain2", "plain"));
}

}  // namespace
}  // namespace kedge::drain::drain_test
