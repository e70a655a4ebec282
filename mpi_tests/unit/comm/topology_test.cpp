// Where the ranks are, for every layout a job may have, and when ranks die while they find out.
#include "comm/topology.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "harness/testing_world.hpp"
#include "harness/topology_checks.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::topology_test {
namespace {

using testing::InProcessWorld;
using testing::StopKind;

using contract::Layout;

Deadline soon() { return Deadline::after(std::chrono::hours(1)); }  // virtual: never waited for

void expect_found(const Layout& layout) {
  InProcessWorld world(static_cast<int>(layout.node.size()));
  for (const auto& outcome :
       world.run_connected([&](Communicator& communicator) { contract::check_topology(communicator, layout); })) {
    EXPECT_TRUE(outcome.returned()) << (outcome.failure ? outcome.failure->message : "died");
  }
}

/// Each node is a failure domain.
Layout nodes(const std::vector<int>& node) { return {node, node}; }

template <class Group>
Layout nodes(int ranks, Group&& group_of) {
  std::vector<int> node(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) node[static_cast<std::size_t>(rank)] = group_of(rank);
  return nodes(node);
}

TEST(Topology, OfOrderlyLayoutsIsFound) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
    expect_found(nodes(ranks, [](int) { return 0; }));
    expect_found(nodes(ranks, [](int rank) { return rank; }));
    for (const int each : {2, 3, 4}) {
      expect_found(nodes(ranks, [&](int rank) { return rank / each; }));
      expect_found(nodes(ranks, [&](int rank) { return rank % each; }));
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Topology, OfUnequalNodesCountsTheLargerFirst) {
  expect_found(nodes({0, 0, 0, 0, 0, 0, 0, 0, 1, 2}));  // 8 + 1 + 1
  expect_found(nodes({1, 2, 0, 0, 0, 0, 0, 0, 0, 0}));
  expect_found(nodes({0, 1, 1, 2, 2, 2, 3, 3, 3, 3}));
  expect_found(nodes({3, 3, 3, 3, 2, 2, 2, 1, 1, 0}));
  expect_found(nodes({0, 1, 2, 1, 2, 3, 3, 4}));
}

TEST(Topology, DomainsMayBeGroupsOfNodesOrParts) {
  expect_found({{0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 0, 0, 1, 1, 1, 1}});
  expect_found({{0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 0, 1, 0, 1, 0, 1}});
  expect_found({{0, 0, 0, 0}, {0, 1, 2, 3}});
}

TEST(Topology, OfRandomLayoutsIsFound) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 32);
    const auto draw = [&] {
      std::vector<int> groups(static_cast<std::size_t>(ranks));
      const auto most = 1 + random() % static_cast<unsigned>(ranks);
      std::generate(groups.begin(), groups.end(), [&] { return static_cast<int>(random() % most); });
      return groups;
    };
    expect_found({draw(), draw()});
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

/// All ranks throw invalid_argument with one text.
std::string refused(int ranks, const std::function<void(Communicator&)>& body) {
  InProcessWorld world(ranks);
  std::string text;
  for (const auto& outcome : world.run_connected(body)) {
    EXPECT_TRUE(outcome.failure);
    if (!outcome.failure) continue;
    EXPECT_EQ(outcome.failure->code, ErrorCode::invalid_argument);
    if (text.empty()) text = outcome.failure->message;
    EXPECT_EQ(outcome.failure->message, text);
  }
  return text;
}

TEST(Topology, NamesAreComparedToTheLastByteAndBounded) {
  const std::string most(1023, 'x');
  InProcessWorld world(3);
  for (const auto& outcome : world.run_connected([&](Communicator& communicator) {
         const auto topology = find_topology(communicator, most + (communicator.rank() == 1 ? "a" : "b"), "", soon());
         EXPECT_EQ(topology.node_ranks, communicator.rank() == 1 ? std::vector<int>{1} : (std::vector<int>{0, 2}));
         EXPECT_EQ(topology.domain_ranks, (std::vector<int>{0, 1, 2}));
       })) {
    EXPECT_TRUE(outcome.returned());
  }
  const auto text = refused(3, [&](Communicator& communicator) {
    (void)find_topology(communicator, communicator.rank() == 1 ? most + "ab" : "n", "d", soon());
  });
  EXPECT_NE(text.find("1025 bytes"), std::string::npos) << text;
}

TEST(Topology, AnUnknownPlaceIsRefusedOnAllRanks) {
  for (const std::uint64_t place : {std::uint64_t{3}, ~std::uint64_t{0}}) {
    const auto text = refused(3, [&](Communicator& communicator) {
      const auto topology = find_topology(communicator, "n", "d", soon());
      std::vector<std::uint64_t> places{0, 1, 2};
      if (communicator.rank() == 2) places = {1, place};
      (void)find_ranks_by_sorted_rank(communicator, topology, places, soon());
    });
    EXPECT_NE(text.find("sorted rank " + std::to_string(place) + "; sorted ranks are 0 to 2"), std::string::npos)
        << text;
  }
}

TEST(Topology, ARankThatDiesMeanwhileLeavesNobodyHanging) {
  constexpr int kRanks = 5;
  const auto body = [](Communicator& communicator) {
    const auto node = std::to_string(communicator.rank() / 2);
    const auto topology = find_topology(communicator, node, node, soon());
    const std::vector<std::uint64_t> places{0, 1, 2, 3, 4};
    (void)find_ranks_by_sorted_rank(communicator, topology, places, soon());
  };
  for (int victim = 0; victim < kRanks; ++victim) {
    bool died = true;
    for (std::uint64_t event = 0; died; ++event) {
      InProcessWorld world(kRanks);
      world.stop_at(victim, event, event % 2 == 0 ? StopKind::die : StopKind::stop);
      const auto outcomes = world.run_connected(body);
      died = outcomes[static_cast<std::size_t>(victim)].died;
      for (const auto& outcome : outcomes) {
        if (outcome.died || outcome.returned()) continue;
        ASSERT_TRUE(outcome.failure) << "rank " << victim << ", event " << event;
        ASSERT_EQ(outcome.failure->code, ErrorCode::timeout) << "rank " << victim << ", event " << event;
      }
      ASSERT_LT(event, 2000U);
    }
  }
}

TEST(Scan, SumsWhatLowerRanksHave) {
  for (const int ranks : {1, 2, 3, 6, 8, 17}) {
    InProcessWorld world(ranks);
    for (const auto& outcome : world.run_connected([](Communicator& communicator) {
           const auto rank = static_cast<std::uint64_t>(communicator.rank());
           const std::vector<std::uint64_t> values{1, rank, ~std::uint64_t{0}};
           EXPECT_EQ(exclusive_scan(communicator, values, soon()),
                     (std::vector<std::uint64_t>{rank, rank * (rank - 1) / 2, std::uint64_t{0} - rank}));
           EXPECT_TRUE(exclusive_scan(communicator, {}, soon()).empty());
         })) {
      EXPECT_TRUE(outcome.returned());
    }
  }
}

}  // namespace
}  // namespace kedge::comm::topology_test
