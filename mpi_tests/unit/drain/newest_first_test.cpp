// In which order kedge drain tries the numbers of ranks that saved checkpoints, and which checkpoint it flushes: the
// newest that a start can recover, whatever was seen of newer ones.
#include "drain/newest_first.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace kedge::drain::newest_first_test {
namespace {

/// Stores and a prefix, as starts find them.
struct World {
  struct Commit {
    std::uint64_t generation = 0;
    bool recoverable = true;
  };
  std::map<std::uint32_t, std::vector<Commit>> in_stores;  ///< by number of ranks
  PrefixState prefix;
  bool is_prefix_damaged = false;
  std::uint64_t full_at = 0;  ///< the flush of this generation fails

  [[nodiscard]] std::vector<FlushPass> passes() const {
    std::vector<FlushPass> passes;
    for (const auto& [world_size, commits] : in_stores) {
      FlushPass pass{{0, world_size, 0, {}}, 0, {}};
      for (const Commit& one : commits) pass.newest_checkpoint = std::max(pass.newest_checkpoint, one.generation);
      if (pass.newest_checkpoint > prefix.generation) passes.push_back(pass);
    }
    return passes;
  }
};

struct Result {
  std::uint64_t flushed = 0;
  std::vector<std::string> tries;
  Search search;
};

Result run(const World& world) {
  Result result;
  const std::vector<FlushPass> passes = world.passes();
  result.search = flush_newest_of(world.prefix, passes, [&](std::size_t index, std::uint64_t at_least) {
    const std::uint32_t world_size = passes[index].layout.world_size;
    result.tries.push_back(std::to_string(world_size) + " for " + std::to_string(at_least));
    Tried tried;
    for (const World::Commit& one : world.in_stores.at(world_size)) {
      if (one.recoverable) tried.generation = std::max(tried.generation, one.generation);
    }
    const bool sees_prefix = world_size == world.prefix.world_size && !world.is_prefix_damaged;
    if (sees_prefix && world.prefix.generation >= tried.generation) {
      tried.generation = world.prefix.generation;
      tried.was_there = true;
    }
    if (tried.generation == 0) {
      throw Error(ErrorCode::unrecoverable, "nothing of " + std::to_string(world_size) + " ranks");
    }
    tried.is_flushed = !tried.was_there && tried.generation >= at_least;
    if (tried.is_flushed && tried.generation == world.full_at) throw Error(ErrorCode::no_space, "full");
    if (tried.is_flushed) result.flushed = tried.generation;
    return tried;
  });
  return result;
}

using Tries = std::vector<std::string>;

TEST(NewestFirst, OfFewerRanksThatNeedARebuild) {
  const Result result = run({{{3, {{5}}}, {4, {{4}}}}, {}});
  EXPECT_EQ(result.flushed, 5U);
  EXPECT_EQ(result.tries, Tries{"3 for 4"});
}

TEST(NewestFirst, TheNextNumberOfRanksIfItCannotBeRecovered) {
  const Result result = run({{{3, {{5, false}}}, {4, {{4}}}}, {}});
  EXPECT_EQ(result.flushed, 4U);
  EXPECT_EQ(result.tries, (Tries{"3 for 4", "4 for 1"}));
  EXPECT_FALSE(result.search.failure);
}

TEST(NewestFirst, AnOlderOneOfTheSameRanksWaitsForTheOthers) {
  const Result result = run({{{3, {{5, false}, {2}}}, {4, {{4}}}}, {}});
  EXPECT_EQ(result.flushed, 4U);
  const Result last = run({{{3, {{5, false}, {2}}}, {4, {{4, false}, {1}}}}, {}});
  EXPECT_EQ(last.flushed, 2U);
  EXPECT_EQ(last.tries, (Tries{"3 for 4", "4 for 2", "3 for 1"}));
}

TEST(NewestFirst, NothingIsFlushedThatThePrefixSupersedes) {
  const Result result = run({{{3, {{5, false}, {2}}}}, {4, {}, 4}});
  EXPECT_EQ(result.flushed, 0U);
  EXPECT_FALSE(result.search.found);
  EXPECT_FALSE(result.search.failure);
  const Result same = run({{{3, {{5, false}, {2}}}}, {4, {}, 3}});
  EXPECT_EQ(same.flushed, 0U);
  EXPECT_EQ(same.search.found, 0U);
  const Result damaged = run({{{3, {{5, false}, {2}}}}, {4, {}, 3}, true});
  EXPECT_EQ(damaged.flushed, 2U) << "what is on the prefix is of no use";
}

TEST(NewestFirst, WhyNothingCanBeRecovered) {
  const Result result = run({{{3, {{5, false}}}, {4, {{4, false}}}}, {}});
  ASSERT_TRUE(result.search.failure);
  EXPECT_EQ(result.search.failure->message, "nothing of 3 ranks; nothing of 4 ranks");
  const Result damaged = run({{{3, {{5, false}}}}, {4, {}, 3}, true});
  EXPECT_TRUE(damaged.search.failure);
}

TEST(NewestFirst, AFailureThatOtherRanksWouldMeetEndsTheSearch) {
  World world{{{3, {{5}}}, {4, {{4}}}}, {}};
  world.full_at = 5;
  const Result result = run(world);
  ASSERT_TRUE(result.search.failure);
  EXPECT_EQ(result.search.failure->code, ErrorCode::no_space);
  EXPECT_EQ(result.tries.size(), 1U);
}

TEST(NewestFirst, IsTheNewestOfAnyWorld) {
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp): the same each time
  const auto below = [&](unsigned end) { return static_cast<std::uint32_t>(random() % end); };
  for (int round = 0; round < 5000; ++round) {
    World world;
    std::uint64_t newest = 0;
    const std::uint32_t prefix_size = below(5);
    if (prefix_size != 0) world.prefix = {1 + below(12), {}, prefix_size};
    for (std::uint64_t generation = 1; generation <= 12; ++generation) {
      if (generation == world.prefix.generation || below(2) == 0) continue;
      const bool recoverable = below(3) == 0;
      world.in_stores[1 + below(4)].push_back({generation, recoverable});
      if (recoverable && generation > world.prefix.generation) newest = generation;
    }
    const Result result = run(world);
    EXPECT_EQ(result.flushed, newest) << "round " << round;
    EXPECT_LE(result.tries.size(), 2 * world.in_stores.size()) << "round " << round;
    EXPECT_EQ(result.search.failure.has_value(), newest == 0 && prefix_size == 0 && !result.tries.empty());
  }
}

}  // namespace
}  // namespace kedge::drain::newest_first_test
