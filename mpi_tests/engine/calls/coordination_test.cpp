// Coordination grows neither with the model nor, per rank, with the job.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "harness/several_starts.hpp"

namespace kedge::faults::coordination_test {
namespace {

/// Message events of the busiest rank in one start that opens and commits twice.
std::uint64_t busiest(int ranks, std::size_t regions, Scheme scheme) {
  SimulatedJob job(ranks);
  job.options.redundancy.scheme = scheme;
  const auto run = [&](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (engine.open()) engine.close();
    const std::vector<double> values(100);
    for (const char* tag : {"a", "b"}) {
      engine.create(tag);
      for (std::size_t i = 0; i < regions; ++i) {
        (void)engine.save("region-" + std::to_string(i), region(std::span(values)));
      }
      engine.commit();
      EXPECT_EQ(engine.level(tag), scheme == Scheme::single ? Level::local : Level::protected_);
    }
  };
  expect_all_returned(job.start(run));
  expect_all_returned(job.start(run));  // this one finds something to agree about
  return *std::ranges::max_element(job.events);
}

// Without parity, which moves more data for more regions.
TEST(Coordination, DoesNotGrowWithTheNumberOfRegions) {
  // Ids are random, and with them which rank is the home of what: that moves a few events from one rank to another.
  const std::uint64_t with_one = busiest(4, 1, Scheme::single);
  EXPECT_LE(busiest(4, 400, Scheme::single), with_one + 20);
}

TEST(Coordination, GrowsWithTheDepthOfATreeOfRanksAndNotWithTheirNumber) {
  const std::uint64_t few = busiest(8, 1, Scheme::xor_);
  const std::uint64_t many = busiest(64, 1, Scheme::xor_);
  // A tree of 8 ranks is 3 deep, one of 64 is 6; sets have 4 members in the one and 8 in the other. Gathering would
  // be eight times as much.
  EXPECT_LT(many, 3 * few) << few << " events with 8 ranks, " << many << " with 64";
}

}  // namespace
}  // namespace kedge::faults::coordination_test
