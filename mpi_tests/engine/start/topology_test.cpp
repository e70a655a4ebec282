// Which ranks share a node, what fails together, and how they share a node's cores; a node that was not told where its
// store is to lie is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "harness/several_starts.hpp"
#include "harness/start_each.hpp"

namespace kedge::faults::topology_test {
namespace {

using ::testing::HasSubstr;

std::vector<comm::Topology> topologies(int ranks, const Setting& set) {
  auto started = start_each(ranks, set);
  expect_all_returned(started.outcomes);
  return started.topologies;
}

TEST(EngineTopology, NodesAreToldApartByMachineAndNode) {
  const auto found = topologies(6, [](int rank, Options&, start::Environment& environment) {
    environment.machine = rank < 4 ? "boot-1/host" : "boot-2/host";
    environment.node = rank % 2 == 0 ? "n0" : "n1";
  });
  EXPECT_EQ(found[2].node_ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(found[3].domain_ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(found[4].node_ranks, (std::vector<int>{4}));
  EXPECT_EQ(found[5].node_ranks, (std::vector<int>{5}));
  EXPECT_EQ(found[0].domain_counts, (DomainCounts{{2, 2}, {2, 1}}));
  EXPECT_EQ(found[5].sorted_rank, 5U);
}

TEST(EngineTopology, SimulatedNodesAreRanksInARowWhateverTheMachine) {
  const auto found = topologies(5, [](int rank, Options& /*options*/, start::Environment& environment) {
    environment.ranks_per_node = 2;
    environment.machine = compose("boot/{}", rank);
  });
  EXPECT_EQ(found[1].node_ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(found[4].domain_ranks, (std::vector<int>{4}));
  EXPECT_EQ(found[4].domain_counts, (DomainCounts{{2, 2}, {1, 1}}));
}

TEST(EngineTopology, FailureDomainsOfAVariable) {
  const auto found = topologies(6, [](int rank, Options& options, start::Environment& environment) {
    environment.ranks_per_node = 2;
    options.topology.failure_domain = "env:RACK";
    environment.find_variable = [rank](const std::string&) { return rank < 2 ? "a" : "b"; };
  });
  EXPECT_EQ(found[3].node_ranks, (std::vector<int>{2, 3}));
  EXPECT_EQ(found[3].domain_ranks, (std::vector<int>{2, 3, 4, 5}));
  EXPECT_EQ(found[0].sorted_rank, 4U);
}

TEST(EngineTopology, TheRealMachineIsNamed) {
  const auto environment = start::Environment::system();
  EXPECT_FALSE(environment.machine.empty());
  EXPECT_EQ(environment.machine, start::Environment::system().machine);
  ASSERT_EQ(setenv("KEDGE_TEST_RACK", "r7", 1), 0);
  EXPECT_EQ(environment.find_variable("KEDGE_TEST_RACK"), "r7");
  ASSERT_EQ(unsetenv("KEDGE_TEST_RACK"), 0);
  EXPECT_EQ(environment.find_variable("KEDGE_TEST_RACK"), std::nullopt);
}

std::vector<unsigned> copy_threads(
    int ranks, unsigned cores, const Setting& set = [](int, Options&, auto&) {}) {
  auto started = start_each(ranks, [&](int rank, Options& options, start::Environment& environment) {
    environment.machine = "boot/host";
    environment.cores = cores;
    set(rank, options, environment);
  });
  expect_all_returned(started.outcomes);
  return started.copy_threads;
}

TEST(CoresOfANode, AreSharedByItsRanksUpToFourEach) {
  EXPECT_EQ(copy_threads(2, 8), (std::vector<unsigned>{4, 4}));
  EXPECT_EQ(copy_threads(2, 6), (std::vector<unsigned>{3, 3}));
  EXPECT_EQ(copy_threads(1, 64), (std::vector<unsigned>{4}));
  EXPECT_EQ(copy_threads(4, 2), (std::vector<unsigned>{1, 1, 1, 1}));
}

TEST(CoresOfANode, AreThereOnceIfOneRankSaysThatNodesAreSimulated) {
  const auto one_says_so = [](int rank, Options&, start::Environment& environment) {
    if (rank == 1) environment.node = "simulated";
  };
  EXPECT_EQ(copy_threads(4, 8, one_says_so), (std::vector<unsigned>{2, 2, 2, 2}));
}

TEST(CoresOfANode, MatterNotIfThreadsAreAskedFor) {
  const auto asked = [](int, Options& options, start::Environment&) { options.store.copy_threads = 7; };
  EXPECT_EQ(copy_threads(2, 2, asked), (std::vector<unsigned>{7, 7}));
}

/// What rank 0 of six ranks on three nodes logs, where `given` says of each node whether it knows store.path.
std::vector<std::string> warnings_with(const std::array<bool, 3>& given) {
  std::vector<std::string> lines;
  const auto starts = start_each(6, [&](int rank, Options& options, start::Environment& environment) {
    environment.machine = compose("boot/{}", rank / 2);
    environment.node = compose("n{}", rank / 2);
    environment.store_candidates = {compose("/nodes/default{}", rank / 2)};
    environment.file_system->make_directory(environment.store_candidates.front());
    options.store.path = given.at(static_cast<std::size_t>(rank / 2)) ? compose("/nodes/{}", rank / 2) : "";
    options.log.level = LogLevel::warning;
    options.log.sink = [&lines, rank](LogLevel, std::string_view line) {
      if (rank == 0) lines.emplace_back(line);
    };
  });
  expect_all_returned(starts.outcomes);
  std::erase_if(lines, [](const std::string& line) { return line.find("store.path is not set") == std::string::npos; });
  return lines;
}

TEST(EngineTopology, NodesThatWereNotToldWhereTheirStoresLieAreNamed) {
  EXPECT_TRUE(warnings_with({true, true, true}).empty());
  EXPECT_TRUE(warnings_with({false, false, false}).empty());
  const auto one = warnings_with({true, true, false});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_THAT(one[0], ::testing::AllOf(HasSubstr("node n2 (its store lies in /nodes/default2)"), HasSubstr("2 others"),
                                       HasSubstr("KEDGE_STORE_PATH")));
  const auto two = warnings_with({false, true, false});
  ASSERT_EQ(two.size(), 1U);
  EXPECT_THAT(two[0], ::testing::AllOf(HasSubstr("node n0 "), HasSubstr(" and 1 more"), HasSubstr("for 1 other:")));
}

}  // namespace
}  // namespace kedge::faults::topology_test
