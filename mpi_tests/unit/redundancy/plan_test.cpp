// Redundancy sets for every layout of up to 14 ranks: which schemes it permits, that members lie in different failure
// domains and sizes differ by one at most, and that a layout without a plan is refused with the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "kedge/error.hpp"
#include "redundancy/plan.hpp"

namespace kedge::redundancy::plan_test {
namespace {

using testing::HasSubstr;

/// Sizes, largest first, as runs.
DomainCounts runs_of(const std::vector<std::uint64_t>& sizes) {
  DomainCounts runs;
  for (const std::uint64_t size : sizes) {
    if (runs.empty() || runs.back().ranks_per_domain != size) runs.push_back({0, size});
    ++runs.back().domain_count;
  }
  return runs;
}

/// Calls visit(sizes) for each way to spread the ranks over domains, sizes descending.
template <class Visit>
void each_partition(std::uint64_t ranks, std::uint64_t most, std::vector<std::uint64_t>& sizes, Visit&& visit) {
  if (ranks == 0) visit(sizes);
  for (std::uint64_t size = std::min(ranks, most); size > 0; --size) {
    sizes.push_back(size);
    each_partition(ranks - size, size, sizes, visit);
    sizes.pop_back();
  }
}

template <class Visit>
void each_layout(std::uint64_t most_ranks, Visit&& visit) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t ranks = 1; ranks <= most_ranks; ++ranks) each_partition(ranks, ranks, sizes, visit);
}

std::vector<std::uint64_t> domain_by_place(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> domains;
  for (std::uint64_t domain = 0; domain < sizes.size(); ++domain) {
    domains.insert(domains.end(), sizes[domain], domain);
  }
  return domains;
}

std::string text_of(const std::vector<std::uint64_t>& sizes) { return testing::PrintToString(sizes); }

/// What must hold for every plan; gives the sizes of the sets.
std::multiset<std::uint64_t> check_sets(const Plan& plan, const std::vector<std::uint64_t>& domains) {
  std::vector<int> seen(domains.size());
  std::multiset<std::uint64_t> sizes;
  for (std::uint64_t place = 0; place < domains.size(); ++place) {
    EXPECT_EQ(plan.domain_of(place), domains[place]);
    const RedundancySet set = plan.find_set(place);
    EXPECT_LT(set.number, plan.set_count());
    EXPECT_EQ(set.sorted_ranks.at(set.position), place);
    EXPECT_TRUE(std::ranges::is_sorted(set.sorted_ranks));
    std::set<std::uint64_t> apart;
    for (const std::uint64_t member : set.sorted_ranks) {
      apart.insert(domains.at(member));
      EXPECT_EQ(plan.find_set(member).number, set.number);
      EXPECT_EQ(plan.find_set(member).sorted_ranks, set.sorted_ranks);
    }
    EXPECT_EQ(apart.size(), set.sorted_ranks.size()) << "two members in one failure domain";
    ++seen[place];
    if (set.position == 0) sizes.insert(set.sorted_ranks.size());
  }
  EXPECT_EQ(sizes.size(), plan.set_count());
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), domains.size());
  EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1U);
  return sizes;
}

TEST(Plan, EveryLayoutOfUpTo14RanksIsFeasibleExactlyWhenNoDomainHoldsMoreThanHalf) {
  each_layout(14, [](const auto& sizes) {
    SCOPED_TRACE(text_of(sizes));
    const auto domains = domain_by_place(sizes);
    const std::uint64_t ranks = domains.size();
    const bool feasible = sizes.front() <= ranks / 2;
    for (const Scheme scheme : {Scheme::partner, Scheme::xor_}) {
      EXPECT_EQ(!check_feasibility(runs_of(sizes), scheme), feasible);
      if (feasible) continue;
      EXPECT_THROW(Plan(runs_of(sizes), scheme, 8), Error);
    }
    if (!feasible) return;
    const auto pairs = check_sets(Plan(runs_of(sizes), Scheme::partner, 8), domains);
    EXPECT_EQ(pairs.count(2), ranks % 2 == 0 ? ranks / 2 : ranks / 2 - 1);
    EXPECT_EQ(pairs.count(3), ranks % 2);
    for (std::uint32_t set_size = 2; set_size <= 8; ++set_size) {
      const auto found = check_sets(Plan(runs_of(sizes), Scheme::xor_, set_size), domains);
      EXPECT_GE(*found.begin(), 2U);
      const bool odd_pairs = set_size == 2 && ranks % 2 == 1;  // one set must have three
      EXPECT_LE(*found.rbegin(), odd_pairs ? 3U : set_size);
      // As few sets as that permits: parity is as small as it can be.
      const std::uint64_t fewest = std::max<std::uint64_t>(sizes.front(), (ranks + set_size - 1) / set_size);
      EXPECT_EQ(found.size(), std::min(fewest, ranks / 2));
    }
  });
}

TEST(Plan, ReedSolomonWantsNoDomainAboveItsShareAndSetsAboveItsParity) {
  each_layout(12, [](const auto& sizes) {
    SCOPED_TRACE(text_of(sizes));
    const auto domains = domain_by_place(sizes);
    const std::uint64_t ranks = domains.size();
    for (std::uint32_t parity = 2; parity <= 4; ++parity) {
      const Redundancy rs{Scheme::rs, parity};
      const bool feasible = sizes.front() <= ranks / (parity + 1);
      ASSERT_EQ(!check_feasibility(runs_of(sizes), rs), feasible);
      if (!feasible) {
        EXPECT_THROW(Plan(runs_of(sizes), rs, 8), Error);
        continue;
      }
      for (std::uint32_t set_size = parity + 1; set_size <= 8; ++set_size) {
        const auto found = check_sets(Plan(runs_of(sizes), rs, set_size), domains);
        EXPECT_GT(*found.begin(), parity);
        // Larger only where even the fewest sets that hold enough members each would be smaller.
        EXPECT_TRUE(*found.rbegin() <= set_size || found.size() == ranks / (parity + 1));
        EXPECT_LE(*found.rbegin(), 2 * parity + 1U > set_size ? 2 * parity + 1U : set_size);
      }
      EXPECT_THROW(Plan(runs_of(sizes), rs, parity), Error);
    }
  });
}

TEST(Plan, TooSmallASetForItsParityIsRefusedWithTheNumbers) {
  try {
    const Plan plan(runs_of({1, 1, 1, 1}), {Scheme::rs, 3}, 3);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.failure().message, HasSubstr("set_size 3 is too small for rs with parity 3: a set needs 4"));
  }
  const auto why = check_feasibility(runs_of({2, 1, 1}), {Scheme::rs, 2});
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(
      *why,
      HasSubstr(
          "rs with parity 2 cannot protect 4 ranks of which 2 are in one failure domain, where at most 1 can be"));
}

TEST(Plan, OneLargeNodeBesideTwoSmallOnesIsRefusedWithTheNumbers) {
  for (const Scheme scheme : {Scheme::partner, Scheme::xor_}) {
    const auto why = check_feasibility(runs_of({8, 1, 1}), scheme);
    ASSERT_TRUE(why.has_value());
    EXPECT_THAT(*why, HasSubstr("10 ranks of which 8 are in one failure domain, where at most 5 can be"));
    EXPECT_THAT(*why, HasSubstr(scheme == Scheme::xor_ ? "xor" : "partner"));
    try {
      const Plan plan(runs_of({8, 1, 1}), scheme, 8);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(error.failure().message, *why);
    }
  }
  EXPECT_FALSE(check_feasibility(runs_of({8, 1, 1}), Scheme::single));
  EXPECT_FALSE(check_feasibility(runs_of({5, 4, 1}), Scheme::xor_));
}

TEST(Plan, SingleHasNoSets) {
  const Plan plan(runs_of({8, 1, 1}), Scheme::single, 8);
  EXPECT_EQ(plan.set_count(), 0U);
  EXPECT_EQ(plan.rank_count(), 10U);
  EXPECT_EQ(plan.find_set(9).sorted_ranks, std::vector<std::uint64_t>{9});
  EXPECT_EQ(plan.find_set(9).position, 0U);
  EXPECT_EQ(plan.domain_of(7), 0U);
  EXPECT_EQ(plan.domain_of(9), 2U);
}

TEST(Plan, ToleranceOfTheSchemes) {
  EXPECT_EQ(tolerance(Scheme::single), 0U);
  EXPECT_EQ(tolerance(Scheme::partner), 1U);
  EXPECT_EQ(tolerance(Scheme::xor_), 1U);
  EXPECT_EQ(tolerance({Scheme::rs, 3}), 3U);
}

TEST(Plan, TheBestSchemeIsTheStrongestThatTheLayoutPermits) {
  EXPECT_EQ(best_scheme(runs_of({1})), Scheme::single);
  EXPECT_EQ(best_scheme(runs_of({8})), Scheme::single);
  EXPECT_EQ(best_scheme(runs_of({4, 4})), Scheme::partner);
  EXPECT_EQ(best_scheme(runs_of({4, 3})), Scheme::single);
  EXPECT_EQ(best_scheme(runs_of({2, 2, 2})), Scheme::xor_);
  EXPECT_EQ(best_scheme(runs_of({8, 1, 1})), Scheme::single);
  EXPECT_EQ(best_scheme(runs_of({5, 4, 1})), Scheme::xor_);
}

TEST(Plan, RefusesWhatIsNoLayoutAndNoScheme) {
  EXPECT_THROW(Plan({}, Scheme::xor_, 8), Error);
  EXPECT_THROW(Plan({{0, 4}}, Scheme::xor_, 8), Error);
  EXPECT_THROW(Plan({{4, 0}}, Scheme::xor_, 8), Error);
  EXPECT_THROW(Plan({{4, 1}, {4, 2}}, Scheme::xor_, 8), Error);
  EXPECT_THROW(Plan({{4, 2}, {4, 2}}, Scheme::xor_, 8), Error);
  EXPECT_THROW(Plan({{4, 2}}, Scheme::automatic, 8), Error);
  EXPECT_THROW(Plan({{4, 2}}, Scheme::xor_, 1), Error);
  const Plan plan({{4, 2}}, Scheme::xor_, 8);
  EXPECT_THROW(static_cast<void>(plan.find_set(8)), Error);
  EXPECT_THROW(static_cast<void>(plan.domain_of(8)), Error);
}

/// Every hundredth place and its set, and their domains, of a plan that is never built whole.
void check_sampled(const DomainCounts& domains) {
  const Plan plan(domains, Scheme::xor_, 8);
  ASSERT_EQ(plan.rank_count(), 1'000'000U);
  std::mt19937_64 random(7);
  for (int sample = 0; sample < 1'000'000; ++sample) {
    const std::uint64_t place = random() % plan.rank_count();
    const RedundancySet set = plan.find_set(place);
    ASSERT_EQ(set.sorted_ranks.at(set.position), place);
    ASSERT_GE(set.sorted_ranks.size(), 2U);
    ASSERT_LE(set.sorted_ranks.size(), 8U);
    if (sample % 100 != 0) continue;
    std::set<std::uint64_t> apart;
    for (const std::uint64_t member : set.sorted_ranks) {
      ASSERT_EQ(plan.find_set(member).sorted_ranks, set.sorted_ranks);
      apart.insert(plan.domain_of(member));
    }
    ASSERT_EQ(apart.size(), set.sorted_ranks.size());
  }
}

TEST(Plan, AMillionRanksAreAnsweredForOneByOne) {
  check_sampled({{125'000, 8}});
  check_sampled({{1, 999}, {10'000, 64}, {40'000, 8}, {1'000, 7}, {32'001, 1}});
}

}  // namespace
}  // namespace kedge::redundancy::plan_test
