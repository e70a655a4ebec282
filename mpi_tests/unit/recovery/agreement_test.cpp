// Agreement on what can be recovered, against an oracle that sees everything at once.
#include "recovery/agreement.hpp"
#include "harness/testing_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::recovery::agreement_test {
namespace {

using ByProcess = std::vector<std::vector<LocalContainer>>;

Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes[15] = number;
  return id;
}

LocalContainer container(std::uint64_t generation, std::uint8_t id, std::uint32_t rank, std::uint32_t world,
                         bool intact = true) {
  LocalContainer holding;
  holding.commit.generation = generation;
  holding.commit.id = id_of(id);
  holding.commit.parent_id = id_of(static_cast<std::uint8_t>(id + 100));
  holding.commit.incarnation = generation / 10;
  holding.logical_rank = LogicalRank{rank};
  holding.commit.world_size = world;
  holding.commit.time_ns = static_cast<std::int64_t>(generation * 1000);
  holding.size_bytes = 100 + rank;
  holding.commit.tag = compose("tag-{}", id);
  holding.intact = intact;
  if (!intact) holding.damage = compose("bits of {} are flipped", rank);
  return holding;
}

StoreReport report_of(int process) { return {compose("/directory-{}", process), {}}; }

/// What every process agreed on; all must be equal.
Agreement agree_on_commits(const ByProcess& holdings, const std::vector<StoreReport>& reports = {},
                           OtherRanks other_ranks = OtherRanks::accept) {
  const auto processes = static_cast<int>(holdings.size());
  testing::InProcessWorld world(processes);
  std::vector<Agreement> agreements(holdings.size());
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    const auto me = static_cast<std::size_t>(communicator.rank());
    const StoreReport report = reports.empty() ? report_of(communicator.rank()) : reports[me];
    agreements[me] = recovery::agree_on_commits(comm::Group(communicator, std::chrono::seconds(60)),
                                                LocalFiles{holdings[me], {}}, report, other_ranks);
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
  const auto facts = [](const Candidate& c) { return std::tuple(c.commit, c.total_bytes, c.recoverable, c.reason); };
  for (const Agreement& other : agreements) {
    EXPECT_EQ(other.unreadable, agreements[0].unreadable);
    EXPECT_EQ(other.candidates.size(), agreements[0].candidates.size());
    for (std::size_t i = 0; i < std::min(other.candidates.size(), agreements[0].candidates.size()); ++i) {
      EXPECT_EQ(facts(other.candidates[i]), facts(agreements[0].candidates[i]));
    }
  }
  return agreements[0];
}

/// A commit that every process has its container of.
ByProcess whole(std::uint32_t processes, std::uint64_t generation, std::uint8_t id) {
  ByProcess holdings(processes);
  for (std::uint32_t rank = 0; rank < processes; ++rank) holdings[rank] = {container(generation, id, rank, processes)};
  return holdings;
}

struct Expected {
  bool recoverable = false;
  std::uint64_t total_bytes = 0;
};

/// What somebody who sees all holdings says of each commit, newest first.
std::map<std::tuple<std::uint64_t, Id128>, Expected, std::greater<>> oracle(const ByProcess& holdings) {
  std::map<std::tuple<std::uint64_t, Id128>, std::set<std::uint32_t>, std::greater<>> held;
  std::map<std::tuple<std::uint64_t, Id128>, std::uint32_t> worlds;
  for (const auto& process : holdings) {
    for (const LocalContainer& holding : process) {
      const std::tuple key(holding.commit.generation, holding.commit.id);
      worlds[key] = holding.commit.world_size;
      auto& ranks = held[key];
      if (holding.intact) ranks.insert(holding.logical_rank.value);
    }
  }
  std::map<std::tuple<std::uint64_t, Id128>, Expected, std::greater<>> expected;
  for (const auto& [key, ranks] : held) {
    Expected& one = expected[key];
    one.recoverable = worlds[key] == holdings.size() && ranks.size() == worlds[key];
    for (const std::uint32_t rank : ranks) one.total_bytes += 100 + rank;
  }
  return expected;
}

TEST(Agreement, NothingHeldIsNoCandidate) {
  for (const std::size_t processes : {1U, 2U, 3U, 5U, 8U}) {
    const Agreement found = agree_on_commits(ByProcess(processes));
    EXPECT_TRUE(found.candidates.empty());
    EXPECT_TRUE(found.unreadable.empty());
  }
}

TEST(Agreement, AWholeCommitIsRecoverableAndAllItsFactsAreTold) {
  for (const std::uint32_t processes : {1U, 2U, 3U, 5U, 8U}) {
    const Agreement found = agree_on_commits(whole(processes, 70, 3));
    ASSERT_EQ(found.candidates.size(), 1U);
    const Candidate& candidate = found.candidates[0];
    EXPECT_TRUE(candidate.recoverable);
    EXPECT_EQ(candidate.commit.generation, 70U);
    EXPECT_EQ(candidate.commit.id, id_of(3));
    EXPECT_EQ(candidate.commit.parent_id, id_of(103));
    EXPECT_EQ(candidate.commit.incarnation, 7U);
    EXPECT_EQ(candidate.commit.world_size, processes);
    EXPECT_EQ(candidate.commit.time_ns, 70'000);
    EXPECT_EQ(candidate.commit.tag, "tag-3");
    EXPECT_EQ(candidate.total_bytes, std::uint64_t{100} * processes + processes * (processes - 1) / 2);
    EXPECT_TRUE(candidate.reason.empty());
  }
}

TEST(Agreement, EverySubsetOfDamagedAndMissingIsJudgedAndEachPlaceIsNamed) {
  constexpr std::uint32_t kProcesses = 3;
  for (int pattern = 1; pattern < 27; ++pattern) {
    ByProcess holdings(kProcesses);
    std::string reason;
    int rest = pattern;
    bool any = false;
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank, rest /= 3) {
      const int fate = rest % 3;  // 0 held, 1 damaged, 2 missing
      if (fate != 2) holdings[rank] = {container(1, 1, rank, kProcesses, fate == 0)};
      any = any || fate != 2;
      if (fate == 0) continue;
      reason += compose("{} of rank {} is {}", reason.empty() ? "the container" : "; that", rank,
                        fate == 1 ? compose("damaged: bits of {} are flipped", rank)
                                  : compose("missing: it is not in /directory-{}", rank));
    }
    const Agreement found = agree_on_commits(holdings);
    if (!any) {
      EXPECT_TRUE(found.candidates.empty());
      continue;
    }
    ASSERT_EQ(found.candidates.size(), 1U) << "pattern " << pattern;
    EXPECT_FALSE(found.candidates[0].recoverable);
    EXPECT_EQ(found.candidates[0].reason, reason);
  }
}

TEST(Agreement, UnreadableFilesAreToldBesideWhatIsMissing) {
  ByProcess holdings = whole(3, 5, 1);
  holdings[1].clear();
  const std::vector<StoreReport> reports = {{"/0", ""}, {"/1", "/1/x is torn"}, {"/2", "/2/y is torn"}};
  const Agreement found = agree_on_commits(holdings, reports);
  EXPECT_EQ(found.unreadable, "/1/x is torn");
  ASSERT_EQ(found.candidates.size(), 1U);
  EXPECT_EQ(found.candidates[0].reason, "the container of rank 1 is missing: found instead: /1/x is torn");
}

TEST(Agreement, ContainersOfDifferentCommitIdsAreNeverAddedUp) {
  for (const std::uint32_t processes : {2U, 3U, 5U, 8U}) {
    ByProcess holdings(processes);
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
      holdings[rank] = {container(9, rank % 2 == 0 ? 1 : 2, rank, processes), container(8, 3, rank, processes)};
    }
    const Agreement found = agree_on_commits(holdings);
    ASSERT_EQ(found.candidates.size(), 3U);
    EXPECT_EQ(found.candidates[0].commit.id, id_of(2));
    EXPECT_FALSE(found.candidates[0].recoverable);
    EXPECT_EQ(found.candidates[1].commit.id, id_of(1));
    EXPECT_FALSE(found.candidates[1].recoverable);
    EXPECT_TRUE(found.candidates[2].recoverable);
  }
}

TEST(Agreement, ContainersThatClaimAnotherRankCountAreNeverAddedUp) {
  const ByProcess holdings = {{container(9, 1, 0, 2)}, {container(9, 1, 1, 3)}};
  const Agreement found = agree_on_commits(holdings);
  ASSERT_EQ(found.candidates.size(), 1U);
  EXPECT_FALSE(found.candidates[0].recoverable);
  EXPECT_EQ(found.candidates[0].total_bytes, 100U);
}

TEST(Agreement, DamageIsToldOfTheCommitThatHasIt) {
  ByProcess holdings = whole(2, 8, 1);
  holdings[1] = {container(9, 2, 1, 2, false)};
  const Agreement found = agree_on_commits(holdings);
  ASSERT_EQ(found.candidates.size(), 2U);
  EXPECT_EQ(found.candidates[1].reason, "the container of rank 1 is missing: it is not in /directory-1");
}

TEST(Agreement, DuplicatesCountOnce) {
  ByProcess holdings(3);
  holdings[0] = {container(1, 1, 0, 3), container(1, 1, 0, 3)};
  holdings[1] = {container(1, 1, 0, 3), container(1, 1, 1, 3)};
  const Agreement lacking = agree_on_commits(holdings);
  ASSERT_EQ(lacking.candidates.size(), 1U);
  EXPECT_FALSE(lacking.candidates[0].recoverable);
  holdings[0].push_back(container(1, 1, 2, 3));  // another process's container counts wherever it lies
  const Agreement found = agree_on_commits(holdings);
  EXPECT_TRUE(found.candidates[0].recoverable);
  EXPECT_EQ(found.candidates[0].total_bytes, 303U);
}

TEST(Agreement, ADamagedContainerBesideAGoodCopyIsNoLoss) {
  ByProcess holdings = whole(2, 1, 1);
  holdings[1].insert(holdings[1].begin(), container(1, 1, 1, 2, false));
  EXPECT_TRUE(agree_on_commits(holdings).candidates.at(0).recoverable);
}

TEST(Agreement, AnotherRankCountIsTakenOrRefusedWithBothNumbers) {
  for (const std::uint32_t processes : {1U, 2U, 5U, 8U}) {
    ByProcess holdings(processes);
    for (std::uint32_t rank = 0; rank < 3; ++rank) holdings[rank % processes].push_back(container(4, 1, rank, 3));
    const Agreement taken = agree_on_commits(holdings);
    ASSERT_EQ(taken.candidates.size(), 1U);
    EXPECT_TRUE(taken.candidates[0].recoverable);
    EXPECT_FALSE(taken.candidates[0].is_protected);
    EXPECT_EQ(taken.candidates[0].held, 3U);
    const Agreement found = agree_on_commits(holdings, {}, OtherRanks::refuse);
    ASSERT_EQ(found.candidates.size(), 1U);
    EXPECT_FALSE(found.candidates[0].recoverable);
    EXPECT_EQ(found.candidates[0].reason,
              compose("it was saved by 3 ranks and this job has {}; start it with 3 ranks", processes));
  }
}

TEST(Agreement, RanksThatTheCommitDoesNotHaveCountForNothing) {
  ByProcess holdings = whole(2, 1, 1);
  holdings[1] = {container(1, 1, 7, 2)};
  EXPECT_FALSE(agree_on_commits(holdings).candidates.at(0).recoverable);
}

TEST(Agreement, LongTextsAreCutAndNotTorn) {
  ByProcess holdings = whole(2, 1, 1);
  holdings[1][0].intact = false;
  holdings[1][0].damage = std::string(5000, 'x');
  holdings[0][0].commit.tag = holdings[1][0].commit.tag = std::string(128, 't');
  const Agreement found = agree_on_commits(holdings);
  EXPECT_EQ(found.candidates.at(0).commit.tag, std::string(128, 't'));
  EXPECT_LT(found.candidates.at(0).reason.size(), 700U);
}

/// Commit 1 of as many ranks as there are processes; what is missing of it, of each rank, and who protects whom.
struct Missing {
  std::set<std::uint32_t> containers;
  std::set<std::uint32_t> parity;
};
std::string reason_of(std::uint32_t ranks, const std::vector<std::vector<std::uint32_t>>& sets,
                      const Missing& missing) {
  std::vector<LocalFiles> holdings(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (!missing.containers.contains(rank)) holdings[rank].containers.push_back(container(1, 1, rank, ranks));
  }
  for (std::size_t number = 0; number < sets.size(); ++number) {
    format::SetDescriptor set;
    set.commit_id = id_of(1);
    set.protection_id = id_of(9);
    set.generation = 1;
    set.world_size = ranks;
    set.set_number = number;
    redundancy::SetShape shape{set.scheme, {}, set.parity_count};
    for (const std::uint32_t rank : sets[number]) {
      set.members.push_back({LogicalRank{rank}, 1, 5000});
      shape.sizes.push_back(5000);
    }
    for (set.position = 0; set.position < set.members.size(); ++set.position) {
      const std::uint32_t rank = sets[number][set.position];
      set.kind = format::SetFileKind::parity;
      set.parity_bytes = redundancy::parity_bytes(shape, set.position);
      if (!missing.parity.contains(rank)) holdings[rank].set_files.push_back(set);
    }
  }
  testing::InProcessWorld world(static_cast<int>(ranks));
  std::string reason;
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    const auto me = static_cast<std::size_t>(communicator.rank());
    const auto found = recovery::agree_on_commits(comm::Group(communicator, std::chrono::seconds(60)), holdings[me],
                                                  report_of(communicator.rank()));
    if (me == 0) reason = found.candidates.at(0).reason;
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
  return reason;
}

TEST(Agreement, OfASetThatLostTooMuchEveryMemberIsNamedOnceWithWhatItLost) {
  EXPECT_EQ(
      reason_of(4, {{0, 1, 2, 3}}, {{0, 1}, {2}}),
      "the container of rank 0 is missing: it is not in /directory-0; its redundancy set (xor over ranks 0 1 2 "
      "3) tolerates the loss of 1 member, but lost 3: rank 0, rank 1 (missing: it is not in /directory-1), rank 2 "
      "(its parity is missing)");
  const std::string of_many = reason_of(7, {{0, 1, 2, 3, 4, 5, 6}}, {{0, 1, 2, 3, 4, 5}, {}});
  EXPECT_TRUE(of_many.ends_with("rank 3 (missing: it is not in /directory-3), rank 4, rank 5")) << of_many;
}

TEST(Agreement, WhatASetCanRebuildIsNotCalledMissing) {
  const std::string reason = reason_of(4, {{0, 1}, {2, 3}}, {{0, 2}, {3}});
  EXPECT_TRUE(reason.starts_with("the container of rank 2 is missing")) << reason;
}

TEST(Agreement, RandomHoldingsAreJudgedAsByTheOracle) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  RecordProperty("seed", compose("{}", seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  constexpr std::array kCounts = {1U, 2U, 3U, 5U, 8U};
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t processes = kCounts[below(kCounts.size())];
    ByProcess holdings(processes);
    const auto commits = static_cast<std::uint8_t>(1 + below(5));
    for (std::uint8_t id = 1; id <= commits; ++id) {
      const std::uint64_t generation = 1 + below(3);  // several ids under one number
      const std::uint32_t world = below(5) == 0 ? 4 : processes;
      const std::uint64_t losses = below(4);
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const bool lost = losses != 0 && below(8) < losses;
        const std::uint64_t copies = lost ? below(2) : 1 + (below(6) == 0 ? 1 : 0);
        for (std::uint64_t copy = 0; copy < copies; ++copy) {
          const std::uint64_t place = below(4) == 0 ? below(processes) : rank % processes;
          holdings[place].push_back(container(generation, id, rank, world, !lost));
        }
      }
    }
    const Agreement found = agree_on_commits(holdings, {}, OtherRanks::refuse);
    const auto expected = oracle(holdings);
    ASSERT_EQ(found.candidates.size(), expected.size()) << "seed " << seed << ", round " << round;
    std::size_t i = 0;
    for (const auto& [key, one] : expected) {
      const Candidate& candidate = found.candidates[i++];
      ASSERT_EQ(std::tuple(candidate.commit.generation, candidate.commit.id), key)
          << "seed " << seed << ", round " << round;
      EXPECT_EQ(candidate.recoverable, one.recoverable) << "seed " << seed << ", round " << round;
      EXPECT_EQ(candidate.total_bytes, one.total_bytes) << "seed " << seed << ", round " << round;
      EXPECT_EQ(candidate.reason.empty(), one.recoverable) << "seed " << seed << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace kedge::recovery::agreement_test
