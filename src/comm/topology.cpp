#include "comm/topology.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "comm/channels.hpp"
#include "comm/group.hpp"
#include "comm/tree_collectives.hpp"
#include "comm/vote.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

constexpr std::size_t kNameBytes = 1024;
constexpr int kNoRank = -1;

constexpr std::uint8_t kNode = 0;
constexpr std::uint8_t kDomain = 1;
constexpr std::uint8_t kKinds = 2;

/// The home's answer to each member of a group; the leader gets the list of members after it.
struct GroupMember {
  std::int32_t kind = 0;
  std::int32_t size = 0;
  std::int32_t index = 0;         // in the ascending list of members
  std::int32_t parent = kNoRank;  // in a binomial tree over that list
};
static_assert(std::is_trivially_copyable_v<GroupMember>);

template <class Value>
void append(std::vector<std::byte>& bytes, std::span<const Value> values) {
  const auto more = std::as_bytes(values);
  bytes.insert(bytes.end(), more.begin(), more.end());
}

template <class Value>
std::vector<Value> values_in(std::span<const std::byte> bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}

/// Where agreement about something numbered is decided.
int home_of(const Communicator& communicator, std::uint64_t number) {
  return static_cast<int>(number % static_cast<std::uint64_t>(communicator.size()));
}

void check_names(Communicator& communicator, std::string_view node, std::string_view domain, Deadline deadline) {
  std::optional<Failure> local;
  if (node.size() > kNameBytes || domain.size() > kNameBytes) {
    local = Failure{ErrorCode::invalid_argument,
                    compose("the name of a node or failure domain has {} bytes; use at most {}",
                            std::max(node.size(), domain.size()), kNameBytes)};
  }
  throw_if(vote(communicator, local, deadline));
}

/// COLLECTIVE. Ranks by name, for the names that have their home here.
std::map<std::string, std::vector<int>> send_to_homes(Communicator& communicator, std::string_view node,
                                                      std::string_view domain, Deadline deadline) {
  std::vector<Communicator::Message> messages;
  for (const auto& [kind, name] : {std::pair(kNode, node), std::pair(kDomain, domain)}) {
    std::vector<std::byte> bytes{static_cast<std::byte>(kind)};
    append<char>(bytes, name);
    const auto hash = crc32c(bytes);
    messages.push_back({home_of(communicator, hash), std::move(bytes)});
  }
  std::map<std::string, std::vector<int>> groups;  // by kind and name
  for (const auto& message : communicator.sparse_exchange(std::move(messages), deadline)) {
    const auto name = values_in<char>(message.bytes);
    groups[std::string(name.begin(), name.end())].push_back(message.peer);  // they come ordered by rank
  }
  return groups;
}

/// The leader's answer holds the whole list, the others' a few words: what a home sends grows with its members, not
/// with their square.
std::vector<Communicator::Message> group_replies(const std::map<std::string, std::vector<int>>& groups) {
  std::vector<Communicator::Message> messages;
  for (const auto& [name, members] : groups) {
    for (std::size_t index = 0; index < members.size(); ++index) {
      const int parent = index == 0 ? kNoRank : members[index & (index - 1)];
      const GroupMember membership{name.front(), static_cast<std::int32_t>(members.size()),
                                   static_cast<std::int32_t>(index), parent};
      std::vector<std::byte> bytes;
      append<GroupMember>(bytes, std::span(&membership, 1));
      if (index == 0) append<int>(bytes, members);
      messages.push_back({members[index], std::move(bytes)});
    }
  }
  return messages;
}

/// COLLECTIVE over the group. Down the tree comes the list of members, of which the leader has it already.
std::vector<int> share_members(Communicator& communicator, const GroupMember& mine, std::vector<int> members,
                               Deadline deadline) {
  members.resize(static_cast<std::size_t>(mine.size));
  if (mine.parent != kNoRank) {
    auto request = communicator.receive(mine.parent, kMembersChannel, std::as_writable_bytes(std::span<int>(members)));
    communicator.wait(std::span(&request, 1), deadline);
  }
  std::vector<Communicator::Request> sends;
  for (std::int64_t bit = 1; (mine.index & bit) == 0 && bit < mine.size; bit <<= 1) {
    if ((mine.index | bit) >= mine.size) continue;
    const int child = members[static_cast<std::size_t>(mine.index | bit)];
    sends.push_back(communicator.send(child, kMembersChannel, std::as_bytes(std::span<const int>(members))));
  }
  communicator.wait(sends, deadline);
  return members;
}

/// COLLECTIVE. Fills node and domain.
void find_groups(Communicator& communicator, std::string_view node, std::string_view domain, Topology& topology,
                 Deadline deadline) {
  const auto groups = send_to_homes(communicator, node, domain, deadline);
  std::vector<GroupMember> mine(kKinds);
  std::vector<std::vector<int>> members(kKinds);
  for (const auto& message : communicator.sparse_exchange(group_replies(groups), deadline)) {
    const std::span<const std::byte> bytes = message.bytes;
    const GroupMember membership = values_in<GroupMember>(bytes.first(sizeof(GroupMember))).front();
    const auto kind = static_cast<std::size_t>(membership.kind);
    mine[kind] = membership;
    members[kind] = values_in<int>(bytes.subspan(sizeof(GroupMember)));
  }
  topology.node_ranks = share_members(communicator, mine[kNode], std::move(members[kNode]), deadline);
  topology.domain_ranks = share_members(communicator, mine[kDomain], std::move(members[kDomain]), deadline);
}

/// COLLECTIVE. The number of domains of each size, the next smaller size in each round.
DomainCounts count_domains(Communicator& communicator, std::uint64_t mine, bool leader, Deadline deadline) {
  DomainCounts runs;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  while (true) {
    std::uint64_t size = mine < last ? mine : 0;
    communicator.all_reduce(std::span(&size, 1), Reduction::max, deadline);
    if (size == 0) return runs;
    std::uint64_t domains = leader && mine == size ? 1 : 0;
    communicator.all_reduce(std::span(&domains, 1), Reduction::sum, deadline);
    runs.push_back({domains, size});
    last = size;
  }
}

/// COLLECTIVE. Place of the domain's leader: all larger domains, then those of one size whose leader is lower, come
/// before.
std::uint64_t find_base(Communicator& communicator, const Topology& topology, Deadline deadline) {
  const int leader = topology.domain_ranks.front();
  std::vector<std::uint64_t> leads(topology.domain_counts.size());
  std::uint64_t base = 0;
  std::size_t run = 0;
  for (; topology.domain_counts[run].ranks_per_domain != topology.domain_ranks.size(); ++run) {
    base += topology.domain_counts[run].domain_count * topology.domain_counts[run].ranks_per_domain;
  }
  if (leader == communicator.rank()) leads[run] = 1;
  base += exclusive_scan(communicator, leads, deadline)[run] * topology.domain_ranks.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&base, 1)), leader, deadline, topology.domain_ranks);
  return base;
}

/// COLLECTIVE. Ranks by place, for the places that have their home here.
std::map<std::uint64_t, int> send_sorted_ranks(Communicator& communicator, std::uint64_t sorted_rank,
                                               Deadline deadline) {
  std::map<std::uint64_t, int> ranks;
  const std::vector<Addressed<std::uint64_t>> mine = {{home_of(communicator, sorted_rank), sorted_rank}};
  for (const auto& [rank, its_place] : exchange_records(communicator, mine, deadline)) ranks.emplace(its_place, rank);
  return ranks;
}

/// COLLECTIVE. Each home's answer, in the order it was asked.
std::map<int, std::vector<int>> ask_homes(Communicator& communicator, const std::map<std::uint64_t, int>& here,
                                          std::span<const std::uint64_t> places, Deadline deadline) {
  std::vector<Addressed<std::uint64_t>> questions;
  for (const std::uint64_t place : places) questions.push_back({home_of(communicator, place), place});
  std::vector<Addressed<int>> replies;
  for (const auto& [asking, place] : exchange_records(communicator, questions, deadline)) {
    const auto found = here.find(place);
    replies.push_back({asking, found == here.end() ? kNoRank : found->second});
  }
  std::map<int, std::vector<int>> home_replies;
  for (const auto& [home, rank] : exchange_records(communicator, replies, deadline)) home_replies[home].push_back(rank);
  return home_replies;
}

}  // namespace

Topology find_topology(Communicator& communicator, std::string_view node, std::string_view domain, Deadline deadline) {
  check_names(communicator, node, domain, deadline);
  Topology topology;
  find_groups(communicator, node, domain, topology, deadline);
  const bool leader = topology.domain_ranks.front() == communicator.rank();
  topology.domain_counts = count_domains(communicator, topology.domain_ranks.size(), leader, deadline);
  const auto index =
      std::ranges::lower_bound(topology.domain_ranks, communicator.rank()) - topology.domain_ranks.begin();
  topology.sorted_rank = find_base(communicator, topology, deadline) + static_cast<std::uint64_t>(index);
  return topology;
}

std::vector<int> find_ranks_by_sorted_rank(Communicator& communicator, const Topology& topology,
                                           std::span<const std::uint64_t> sorted_ranks, Deadline deadline) {
  const auto here = send_sorted_ranks(communicator, topology.sorted_rank, deadline);
  const auto home_replies = ask_homes(communicator, here, sorted_ranks, deadline);
  std::vector<int> ranks;
  std::optional<Failure> local;
  std::map<int, std::size_t> next;
  for (const std::uint64_t place : sorted_ranks) {
    const int home = home_of(communicator, place);
    ranks.push_back(home_replies.at(home)[next[home]++]);
    if (ranks.back() != kNoRank || local) continue;
    local = Failure{ErrorCode::invalid_argument,
                    compose("there is no sorted rank {}; sorted ranks are 0 to {}", place, communicator.size() - 1)};
  }
  throw_if(vote(communicator, local, deadline));
  return ranks;
}

std::vector<std::uint64_t> exclusive_scan(Communicator& communicator, std::span<const std::uint64_t> values,
                                          Deadline deadline) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  std::vector<std::uint64_t> before(values.size());
  std::vector<std::uint64_t> through(values.begin(), values.end());  // over the last `distance` ranks, this included
  for (int distance = 1; distance<ranks; distance = distance> ranks / 2 ? ranks : 2 * distance) {
    const std::vector<std::uint64_t> sent = through;
    std::vector<std::uint64_t> received(values.size());
    std::array<Communicator::Request, 2> requests;
    if (rank >= distance) {
      requests[0] = communicator.receive(rank - distance, kScanChannel, std::as_writable_bytes(std::span(received)));
    }
    if (rank + distance < ranks) {
      requests[1] = communicator.send(rank + distance, kScanChannel, std::as_bytes(std::span(sent)));
    }
    communicator.wait(requests, deadline);
    reduce_into(before, received, Reduction::sum);
    reduce_into(through, received, Reduction::sum);
  }
  return before;
}

}  // namespace kedge::comm
