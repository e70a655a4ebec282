// What homes of logical ranks and sets decide and order, against an oracle that sees every process at once.
#include "recovery/homes.hpp"
#include "harness/testing_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "recovery/agreement.hpp"
#include "recovery/orders.hpp"

namespace kedge::recovery::homes_test {
namespace {

using store::FileKind;

Id128 id_of(std::uint64_t number) {
  Id128 id;
  for (std::size_t i = 0; i < 8; ++i) id.bytes[i] = static_cast<std::uint8_t>(number * 0x9e3779b97f4a7c15U >> (8 * i));
  return id;
}

/// One file that a process may hold: of a commit, a kind, a logical rank and, but for containers, a protection.
using File = std::tuple<Id128, FileKind, std::uint32_t, Id128>;

struct Set {
  Scheme scheme = Scheme::xor_;
  std::uint32_t parities = 1;
  Id128 protection_id;
  std::uint64_t number = 0;
  std::vector<std::uint32_t> members;
};

struct Commit {
  Id128 commit_id;
  std::uint64_t generation = 0;
  std::uint32_t world = 0;
  std::vector<Set> sets;
};

/// Everything there is, seen from above.
struct World {
  std::uint32_t processes = 0;
  std::vector<Commit> commits;
  std::vector<std::set<File>> held;  ///< by process

  [[nodiscard]] std::vector<std::uint32_t> holders(const File& file) const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t process = 0; process < processes; ++process) {
      if (held[process].contains(file)) found.push_back(process);
    }
    return found;
  }
  [[nodiscard]] bool has(const File& file) const { return !holders(file).empty(); }
};

std::uint64_t size_of(std::uint32_t rank) { return 5000 + 100 * rank; }

format::SetDescriptor descriptor_of(const Commit& commit, const Set& set, std::size_t position, FileKind kind) {
  format::SetDescriptor descriptor;
  descriptor.run_id = id_of(1);
  descriptor.commit_id = commit.commit_id;
  descriptor.protection_id = set.protection_id;
  descriptor.generation = commit.generation;
  descriptor.world_size = commit.world;
  descriptor.scheme = set.scheme;
  descriptor.parity_count = set.parities;
  descriptor.set_number = set.number;
  descriptor.position = static_cast<std::uint32_t>(position);
  redundancy::SetShape shape{set.scheme, {}, set.parities};
  for (const std::uint32_t rank : set.members) {
    descriptor.members.push_back({LogicalRank{rank}, 7 * rank, size_of(rank)});
    shape.sizes.push_back(size_of(rank));
  }
  if (kind == FileKind::parity) {
    descriptor.kind = format::SetFileKind::parity;
    descriptor.parity_bytes = redundancy::parity_bytes(shape, descriptor.position);
  }
  return descriptor;
}

LocalFiles holdings_of(const World& world, std::uint32_t process) {
  LocalFiles mine;
  for (const Commit& commit : world.commits) {
    for (std::uint32_t rank = 0; rank < commit.world; ++rank) {
      if (!world.held[process].contains({commit.commit_id, FileKind::container, rank, Id128{}})) continue;
      LocalContainer holding;
      holding.commit.generation = commit.generation;
      holding.commit.id = commit.commit_id;
      holding.logical_rank = LogicalRank{rank};
      holding.commit.world_size = commit.world;
      holding.size_bytes = size_of(rank);
      holding.commit.tag = "tag";
      holding.intact = true;
      mine.containers.push_back(holding);
    }
    for (const Set& set : commit.sets) {
      for (std::size_t i = 0; i < set.members.size(); ++i) {
        for (const FileKind kind : {FileKind::parity, FileKind::descriptor}) {
          if (!world.held[process].contains({commit.commit_id, kind, set.members[i], set.protection_id})) continue;
          mine.set_files.push_back(descriptor_of(commit, set, i, kind));
        }
      }
    }
  }
  return mine;
}

/// What the contracts say of one set.
struct Judgement {
  bool known = false, decodable = false, whole = false;
};

Judgement judge(const World& world, const Commit& commit, const Set& set) {
  Judgement judgement;
  std::size_t members_with_loss = 0;
  bool all_copies = true;
  bool all = true;
  const std::size_t members = set.members.size();
  const auto there = [&](FileKind kind, std::size_t i) {
    const Id128 protection = kind == FileKind::container ? Id128{} : set.protection_id;
    return world.has({commit.commit_id, kind, set.members[i % members], protection});
  };
  for (std::size_t i = 0; i < members; ++i) {
    const bool container = there(FileKind::container, i);
    const bool parity = there(FileKind::parity, i);
    const bool descriptor = there(FileKind::descriptor, i);
    judgement.known = judgement.known || parity || descriptor;
    members_with_loss += container && parity ? 0 : 1;
    all_copies = all_copies && (container || there(FileKind::parity, i + 1));
    all = all && container && parity && descriptor;
  }
  judgement.decodable =
      judgement.known && (set.scheme == Scheme::partner ? all_copies : members_with_loss <= set.parities);
  judgement.whole = all;
  return judgement;
}

struct Expected {
  bool recoverable = true, is_protected = true;
  std::uint32_t rebuilt = 0;
};

Expected expect(const World& world, const Commit& commit) {
  Expected expected;
  for (std::uint32_t rank = 0; rank < commit.world; ++rank) {
    bool decodable = false;
    bool whole = false;
    for (const Set& set : commit.sets) {
      if (std::ranges::find(set.members, rank) == set.members.end()) continue;
      const Judgement judgement = judge(world, commit, set);
      decodable = decodable || judgement.decodable;
      whole = whole || judgement.whole;
    }
    const bool held = world.has({commit.commit_id, FileKind::container, rank, Id128{}});
    if (!held && decodable) ++expected.rebuilt;
    expected.recoverable = expected.recoverable && (held || decodable);
    expected.is_protected = expected.is_protected && whole;
  }
  expected.recoverable = expected.recoverable && commit.world == world.processes;
  expected.is_protected = expected.is_protected && commit.world == world.processes;
  return expected;
}

/// Worlds as failures make them: processes that hold nothing, files that are gone, files that lie elsewhere or twice.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  World world() {
    World world;
    world.processes = static_cast<std::uint32_t>(2 + below(7));
    world.held.resize(world.processes);
    const std::uint64_t commits = 1 + below(3);
    for (std::uint64_t number = 1; number <= commits; ++number) {
      Commit commit{id_of(100 + number), 1 + below(2), world.processes, {}};
      if (below(10) == 0) ++commit.world;
      const std::uint64_t protections = below(3);
      for (std::uint64_t i = 0; i < protections; ++i) protect(commit, id_of(1000 * number + i));
      world.commits.push_back(commit);
    }
    for (const Commit& commit : world.commits) spread(world, commit);
    for (std::uint64_t lost = below(3); lost > 0; --lost) world.held[below(world.processes)].clear();
    return world;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void protect(Commit& commit, const Id128& protection_id) {
    std::vector<std::uint32_t> ranks(commit.world);
    std::iota(ranks.begin(), ranks.end(), 0U);
    std::ranges::shuffle(ranks, random_);
    constexpr std::array kSchemes = {Scheme::xor_, Scheme::partner, Scheme::rs};
    const Scheme scheme = kSchemes.at(below(commit.world < 3 ? 2 : 3));
    const std::uint32_t parities = scheme == Scheme::rs ? 2 : 1;
    const std::uint64_t sets = 1 + below(commit.world / (parities + 1));
    for (std::uint64_t number = 0; number < sets; ++number) {
      Set set{scheme, parities, protection_id, number, {}};
      for (std::size_t i = number; i < ranks.size(); i += sets) set.members.push_back(ranks[i]);
      commit.sets.push_back(set);
    }
  }

  void spread(World& world, const Commit& commit) {
    const bool permuted = below(3) == 0;
    const std::uint64_t one_gone_in = 2 + below(40);
    const auto put = [&](std::uint32_t rank, FileKind kind, const Id128& protection_id) {
      if (below(one_gone_in) == 0) return;
      const std::uint64_t copies = below(8) == 0 ? 2 : 1;
      for (std::uint64_t copy = 0; copy < copies; ++copy) {
        const std::uint64_t place = permuted || copy != 0 || below(10) == 0 ? below(world.processes) : rank;
        world.held[place % world.processes].insert({commit.commit_id, kind, rank, protection_id});
      }
    };
    for (std::uint32_t rank = 0; rank < commit.world; ++rank) put(rank, FileKind::container, {});
    for (const Set& set : commit.sets) {
      for (const std::uint32_t rank : set.members) {
        put(rank, FileKind::parity, set.protection_id);
        put(rank, FileKind::descriptor, set.protection_id);
      }
    }
  }

  std::mt19937_64 random_;
};

/// What all processes agree on, and each one's orders for the newest that can be had.
struct Outcome {
  std::vector<Candidate> candidates;
  std::optional<Candidate> chosen;
  std::vector<Orders> orders;
};

Outcome run(const World& world) {
  testing::InProcessWorld threads(static_cast<int>(world.processes));
  Outcome outcome;
  outcome.orders.resize(world.processes);
  const auto outcomes = threads.run_connected([&](Communicator& communicator) {
    const auto me = static_cast<std::uint32_t>(communicator.rank());
    const comm::Group group(communicator, std::chrono::seconds(60));
    const Agreement agreement =
        agree_on_commits(group, holdings_of(world, me), {compose("/directory-{}", me), {}}, OtherRanks::refuse);
    const auto& candidates = agreement.candidates;
    const auto chosen = std::ranges::find_if(candidates, &Candidate::recoverable);
    if (chosen != candidates.end()) {
      outcome.orders[me] = plan_orders(group, agreement.homes, *chosen, [&](LogicalRank) { return group.rank(); });
    }
    if (me != 0) return;
    outcome.candidates = candidates;
    if (chosen != candidates.end()) outcome.chosen = *chosen;
  });
  for (const auto& one : outcomes) EXPECT_TRUE(one.returned()) << (one.failure ? to_string(*one.failure) : "");
  return outcome;
}

void expect_judged_right(const World& world, const std::vector<Candidate>& candidates) {
  std::size_t with_containers = 0;
  for (const Commit& commit : world.commits) {
    const auto candidate =
        std::ranges::find(candidates, commit.commit_id, [](const Candidate& one) { return one.commit.id; });
    bool any = false;
    for (std::uint32_t rank = 0; rank < commit.world; ++rank) {
      any = any || world.has({commit.commit_id, FileKind::container, rank, Id128{}});
    }
    ASSERT_EQ(candidate != candidates.end(), any);
    if (!any) continue;
    ++with_containers;
    const Expected expected = expect(world, commit);
    EXPECT_EQ(candidate->recoverable, expected.recoverable);
    EXPECT_EQ(candidate->reason.empty(), expected.recoverable) << candidate->reason;
    if (commit.world == world.processes) {
      EXPECT_EQ(candidate->rebuilt, expected.rebuilt);
    }
    EXPECT_EQ(candidate->is_protected, expected.is_protected);
  }
  EXPECT_EQ(candidates.size(), with_containers);
}

/// Carries out the moves: both sides know of each, and whoever is to send has the file.
void move_files(World& world, const std::vector<Orders>& orders) {
  const World before = world;
  std::multiset<std::tuple<FileKind, std::uint32_t, Id128, int, int>> sent, received;
  for (std::uint32_t process = 0; process < world.processes; ++process) {
    for (const MoveOrder& move : orders[process].moves) {
      const auto me = static_cast<int>(process);
      const std::tuple told(move.kind, move.logical_rank.value, move.key.protection_id, move.from, move.to);
      ASSERT_TRUE(move.from == me || move.to == me);
      ASSERT_NE(move.from, move.to);
      (move.from == me ? sent : received).insert(told);
      const File file{move.key.commit_id, move.kind, move.logical_rank.value, move.key.protection_id};
      const auto holders = before.holders(file);
      EXPECT_EQ(static_cast<std::uint32_t>(move.from), holders.at(0)) << "the lowest holder sends";
      EXPECT_FALSE(before.held[static_cast<std::size_t>(move.to)].contains(file)) << "what the owner has is not moved";
      EXPECT_EQ(static_cast<std::uint32_t>(move.to), move.logical_rank.value);
      world.held[static_cast<std::size_t>(move.to)].insert(file);
    }
  }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent.size(), std::set(sent.begin(), sent.end()).size()) << "nothing is moved twice";
}

/// After the moves what is called present lies with its owner, and all members of a set were told the same.
void expect_sets_ready(const World& world, const std::vector<Orders>& orders) {
  std::map<std::tuple<Id128, std::uint64_t>, std::vector<const SetOrder*>> by_set;
  for (std::uint32_t process = 0; process < world.processes; ++process) {
    for (const SetOrder& order : orders[process].sets) {
      const auto& set = order.set;
      EXPECT_EQ(set.members.at(set.position).logical_rank.value, process);
      EXPECT_EQ(set.kind, format::SetFileKind::descriptor);
      by_set[{set.protection_id, set.set_number}].push_back(&order);
      const auto has = [&](FileKind kind, const Id128& protection) {
        return world.held[process].contains({set.commit_id, kind, process, protection});
      };
      EXPECT_EQ(order.present.container.at(set.position), has(FileKind::container, {}));
      EXPECT_EQ(order.present.parity.at(set.position), has(FileKind::parity, set.protection_id));
    }
  }
  for (const auto& [key, members] : by_set) {
    ASSERT_EQ(members.size(), members.front()->set.members.size());
    for (const SetOrder* order : members) {
      EXPECT_EQ(order->rebuild, members.front()->rebuild);
      EXPECT_EQ(order->present.container, members.front()->present.container);
      EXPECT_EQ(order->present.parity, members.front()->present.parity);
      EXPECT_TRUE(redundancy::can_decode(order->set.scheme, order->set.parity_count, order->present));
    }
  }
}

TEST(Homes, ASetFileThatContradictsTheFirstOfItsSetIsNoHelp) {
  const Set set{Scheme::xor_, 1, id_of(1000), 0, {0, 1, 2}};
  const Commit commit{id_of(100), 1, 3, {set}};
  World world{3, {commit}, std::vector<std::set<File>>(3)};
  for (const std::uint32_t rank : {1U, 2U}) {  // that of rank 0 is to be rebuilt
    world.held[rank].insert({commit.commit_id, FileKind::container, rank, Id128{}});
    world.held[rank].insert({commit.commit_id, FileKind::parity, rank, set.protection_id});
  }
  const auto is_recoverable = [&](const std::function<void(format::SetDescriptor&)>& change) {
    testing::InProcessWorld threads(3);
    bool recoverable = false;
    const auto outcomes = threads.run_connected([&](Communicator& communicator) {
      const auto me = static_cast<std::uint32_t>(communicator.rank());
      LocalFiles mine = holdings_of(world, me);
      if (me == 2) change(mine.set_files.at(0));
      const Agreement agreement = agree_on_commits(comm::Group(communicator, std::chrono::seconds(60)), mine, {});
      if (me == 0) recoverable = agreement.candidates.at(0).recoverable;
    });
    for (const auto& one : outcomes) EXPECT_TRUE(one.returned());
    return recoverable;
  };
  EXPECT_TRUE(is_recoverable([](format::SetDescriptor&) {}));
  EXPECT_FALSE(is_recoverable([](format::SetDescriptor& other) { ++other.members[0].crc; }));
  EXPECT_FALSE(is_recoverable([](format::SetDescriptor& other) { other.scheme = Scheme::partner; }));
}

TEST(Homes, RandomLossesOfContainersParityAndDescriptorsAreJudgedAndOrderedAsByTheOracle) {
  const std::uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  RecordProperty("seed", compose("{}", seed));
  std::size_t rebuilt = 0;
  std::size_t moved = 0;
  for (std::uint64_t round = 0; round < 600; ++round) {
    SCOPED_TRACE(compose("seed {}, round {}", seed, round));
    World world = Maker(seed + round).world();
    const Outcome outcome = run(world);
    expect_judged_right(world, outcome.candidates);
    if (!outcome.chosen) continue;
    const Id128 commit_id = outcome.chosen->commit.id;
    const World before = world;
    move_files(world, outcome.orders);
    expect_sets_ready(world, outcome.orders);
    for (std::uint32_t rank = 0; rank < world.processes; ++rank) {
      const File container{commit_id, FileKind::container, rank, Id128{}};
      const auto makes = std::ranges::count_if(outcome.orders[rank].sets, [&](const SetOrder& order) {
        return order.rebuild && !order.present.container[order.set.position];
      });
      // In place or moved, or made by a set, or by two sets that were asked for different members.
      EXPECT_EQ(makes == 0, before.has(container)) << "rank " << rank;
      EXPECT_EQ(world.held[rank].contains(container), before.has(container)) << "rank " << rank;
      rebuilt += makes != 0 ? 1U : 0U;
    }
    for (const Orders& orders : outcome.orders) moved += orders.moves.size();
    if (HasFailure()) break;
  }
  EXPECT_GT(rebuilt, 50U) << "the losses are too heavy or too light to show anything";
  EXPECT_GT(moved, 50U);
}

}  // namespace
}  // namespace kedge::recovery::homes_test
