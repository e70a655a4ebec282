#include "harness/topology_checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.hpp"
#include "comm/topology.hpp"
#include "harness/communicator_contract.hpp"

namespace kedge::comm::contract {
namespace {

std::vector<int> members_of(const std::vector<int>& groups, int group) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    if (groups[rank] == group) members.push_back(static_cast<int>(rank));
  }
  return members;
}

/// All ranks in the order of their places, by the definition.
std::vector<int> by_place(const Layout& layout) {
  std::vector<std::vector<int>> domains;
  for (const int domain : layout.domain) {
    const auto members = members_of(layout.domain, domain);
    if (std::ranges::find(domains, members) == domains.end()) domains.push_back(members);  // by lowest rank
  }
  std::ranges::stable_sort(domains, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<int> order;
  for (const auto& members : domains) order.insert(order.end(), members.begin(), members.end());
  return order;
}

DomainCounts runs_of(const Layout& layout) {
  std::map<int, std::uint64_t> sizes;
  for (const int domain : layout.domain) ++sizes[domain];
  std::map<std::uint64_t, std::uint64_t, std::greater<>> counts;
  for (const auto& [domain, size] : sizes) ++counts[size];
  DomainCounts runs;
  for (const auto& [size, domains] : counts) runs.push_back({domains, size});
  return runs;
}

}  // namespace

void check_topology(Communicator& communicator, const Layout& layout) {
  const int rank = communicator.rank();
  const auto me = static_cast<std::size_t>(rank);
  const auto topology =
      find_topology(communicator, compose("n{}", layout.node[me]), compose("d{}", layout.domain[me]), soon());
  EXPECT_EQ(topology.node_ranks, members_of(layout.node, layout.node[me])) << "rank " << rank;
  EXPECT_EQ(topology.domain_ranks, members_of(layout.domain, layout.domain[me])) << "rank " << rank;
  EXPECT_EQ(topology.domain_counts, runs_of(layout)) << "rank " << rank;
  const auto order = by_place(layout);
  EXPECT_EQ(topology.sorted_rank, static_cast<std::uint64_t>(std::ranges::find(order, rank) - order.begin()))
      << "rank " << rank;

  // Every other rank asks for all places, backwards and one of them twice; the others for nothing.
  std::vector<std::uint64_t> places;
  std::vector<int> expected;
  for (std::size_t place = order.size(); rank % 2 == 0 && place-- > 0;) {
    places.push_back(place);
    expected.push_back(order[place]);
  }
  if (!places.empty()) {
    places.push_back(places.front());
    expected.push_back(expected.front());
  }
  EXPECT_EQ(find_ranks_by_sorted_rank(communicator, topology, places, soon()), expected) << "rank " << rank;
}

}  // namespace kedge::comm::contract
