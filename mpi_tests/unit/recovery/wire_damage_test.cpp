// What another process says is held against what it may be about: a record that is damaged or goes astray is refused,
// and nothing impossible is decided or ordered by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "harness/forwarding_communicator.hpp"
#include "harness/testing_world.hpp"
#include "recovery/orders.hpp"

namespace kedge::recovery::wire_damage_test {
namespace {

using store::FileKind;

constexpr int kRanks = 4;
constexpr std::uint32_t kCounted = kRanks;
constexpr std::size_t kBytesTried = 96;  // of each message: the first records
const Id128 kCommit{{9, 9}};
const Id128 kLost{{1}};   // its set has lost a container and makes it again
const Id128 kWhole{{5}};  // of its set nothing is missing
constexpr int kHomeOfSets = 1;

/// The highest bit leaves what there is; the lowest make one process, rank or set another.
constexpr std::uint8_t kHighest = 0x80;
constexpr std::array<std::uint8_t, 3> kFlips = {kHighest, 0x01, 0x03};

/// The damage that is done to one exchange of many.
struct Corruption {
  int exchange = 0;
  bool astray = false;     ///< every message goes to the process behind its receiver
  std::size_t byte = 0;    ///< of every message that has so many
  std::uint8_t flips = 0;  ///< its bits
  bool at_end = false;     ///< the byte is counted from the last one
};

class HarmedCommunicator final : public testing::ForwardingCommunicator {
 public:
  HarmedCommunicator(Communicator& inner, const Corruption& harm) : ForwardingCommunicator(inner), corruption_(harm) {}

  std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    const bool now = exchanges_++ == corruption_.exchange;
    if (now && corruption_.astray) {
      for (Message& message : messages) message.peer = (message.peer + 1) % kRanks;
    }
    std::vector<Message> arrived = ForwardingCommunicator::sparse_exchange(std::move(messages), deadline);
    for (Message& message : arrived) {
      if (!now || corruption_.byte >= message.bytes.size()) continue;
      message.bytes[corruption_.at_end ? message.bytes.size() - 1 - corruption_.byte : corruption_.byte] ^=
          std::byte{corruption_.flips};
      has_harmed_ = true;
    }
    return arrived;
  }
  [[nodiscard]] int exchanges() const { return exchanges_; }
  [[nodiscard]] bool has_harmed() const { return has_harmed_; }

 private:
  Corruption corruption_;
  int exchanges_ = 0;
  bool has_harmed_ = false;
};

format::SetDescriptor set_file(const Id128& protection_id, std::array<std::uint32_t, 2> members, std::uint32_t position,
                               format::SetFileKind kind) {
  format::SetDescriptor set;
  set.commit_id = kCommit;
  set.protection_id = protection_id;
  set.generation = 7;
  set.world_size = kCounted;
  set.scheme = Scheme::partner;
  set.parity_count = 1;
  set.position = position;
  for (const std::uint32_t rank : members) set.members.push_back({LogicalRank{rank}, 1, 5000});
  set.kind = kind;
  if (kind == format::SetFileKind::parity) set.parity_bytes = 5000;
  return set;
}

/// Rank 0's container is rebuilt, rank 2's fetched, and rank 3's moves from process 0.
LocalFiles holdings_of(int process) {
  LocalFiles mine;
  const auto add = [&](std::uint32_t rank) {
    LocalContainer holding;
    holding.commit.generation = 7;
    holding.commit.id = kCommit;
    holding.commit.world_size = kCounted;
    holding.logical_rank = LogicalRank{rank};
    holding.size_bytes = 5000;
    holding.intact = true;
    mine.containers.push_back(holding);
  };
  const auto add_files = [&](const Id128& protection_id, std::array<std::uint32_t, 2> members, std::uint32_t position) {
    for (const auto kind : {format::SetFileKind::descriptor, format::SetFileKind::parity}) {
      mine.set_files.push_back(set_file(protection_id, members, position, kind));
    }
  };
  if (process == 0) add(3);
  if (process == 1) add(1);
  if (process <= 1) add_files(kLost, {0, 1}, static_cast<std::uint32_t>(process));
  if (process == 1) add_files(kWhole, {1, 3}, 0);
  if (process == 3) add_files(kWhole, {1, 3}, 1);
  return mine;
}

/// What each process made of it.
template <class Made>
struct Outcome {
  std::vector<Made> made = std::vector<Made>(kRanks);
  std::array<bool, kRanks> refused{};
  std::array<bool, kRanks> harmed{};

  [[nodiscard]] bool anybody_refused() const { return std::ranges::any_of(refused, std::identity()); }
  [[nodiscard]] bool anybody_was_harmed() const { return std::ranges::any_of(harmed, std::identity()); }
};

/// `step` makes `exchanges` exchanges on every process. Whoever refuses goes on without it, so that nobody waits.
template <class Made>
Outcome<Made> run(const Corruption& harm, int exchanges,
                  const std::function<Made(const comm::Group&, const Homes&)>& step,
                  const std::function<void(const comm::Group&, int made)>& progress) {
  testing::InProcessWorld world(kRanks);
  Outcome<Made> outcome;
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    const auto me = static_cast<std::size_t>(communicator.rank());
    const comm::Group well(communicator, std::chrono::seconds(60));
    const Homes homes = exchange_local_files(well, holdings_of(communicator.rank()));
    HarmedCommunicator between(communicator, harm);
    try {
      outcome.made[me] = step(comm::Group(between, std::chrono::seconds(60)), homes);
      EXPECT_EQ(between.exchanges(), exchanges);
    } catch (const std::exception&) {
      outcome.refused[me] = true;
      progress(well, between.exchanges());
      for (int made = between.exchanges(); made < exchanges; ++made) {
        (void)well.exchange(std::vector<Communicator::Message>());
      }
    }
    outcome.harmed[me] = between.has_harmed();
  });
  for (const auto& one : outcomes) EXPECT_TRUE(one.returned()) << (one.failure ? one.failure->message : "");
  return outcome;
}

constexpr int kExchangesOfHomes = 5;
constexpr int kExchangesOfOrders = 4;

Outcome<Homes> homes_of(const Corruption& harm) {
  return run<Homes>(
      harm, kExchangesOfHomes,
      [](const comm::Group& group, const Homes&) { return exchange_local_files(group, holdings_of(group.rank())); },
      [](const comm::Group& group, int made) {
        if (made == 1) (void)group.any(true);  // that there are set files
      });
}

Outcome<Orders> orders_of(const Corruption& harm) {
  return run<Orders>(
      harm, kExchangesOfOrders,
      [](const comm::Group& group, const Homes& homes) {
        Candidate chosen;
        chosen.commit.generation = 7;
        chosen.commit.id = kCommit;
        chosen.commit.world_size = kCounted;
        return plan_orders(group, homes, chosen, [&](LogicalRank) { return group.rank(); });
      },
      [](const comm::Group&, int) {});
}

bool is_holder(int process) { return process >= kNoProcess && process < kRanks; }

void expect_possible(const Outcome<Homes>& outcome, const Corruption& harm) {
  for (int process = 0; process < kRanks; ++process) {
    if (outcome.refused[static_cast<std::size_t>(process)]) continue;
    const Homes& homes = outcome.made[static_cast<std::size_t>(process)];
    EXPECT_TRUE(homes.sets.empty() || process == kHomeOfSets);
    for (const auto& [key, homed] : homes.ranks) {
      EXPECT_LT(key.logical_rank, key.world_size);
      EXPECT_EQ(static_cast<int>(key.logical_rank % kCounted), process);
      EXPECT_TRUE(is_holder(homed.holder)) << homed.holder;
      for (const CandidateSet& offer : homed.candidate_sets) {
        ASSERT_TRUE(offer.home >= 0 && offer.home < kRanks) << offer.home;
        const auto& sets = outcome.made[static_cast<std::size_t>(offer.home)].sets;
        if (offer.index >= sets.size() || harm.flips != kHighest) continue;  // whoever is asked for it refuses
        EXPECT_EQ(offer.decodable, sets[offer.index].decodable);
        EXPECT_EQ(offer.whole, sets[offer.index].whole);
      }
    }
    for (const HomedSet& set : homes.sets) {
      for (const auto* holders : {&set.container, &set.parity, &set.descriptor}) {
        EXPECT_EQ(holders->size(), set.set.members.size());
        EXPECT_TRUE(std::ranges::all_of(*holders, is_holder));
      }
    }
  }
}

void expect_possible(const Outcome<Orders>& outcome, const Corruption& harm) {
  for (int process = 0; process < kRanks; ++process) {
    if (outcome.refused[static_cast<std::size_t>(process)]) continue;
    const Orders& orders = outcome.made[static_cast<std::size_t>(process)];
    const auto owns = [&](LogicalRank rank) { return static_cast<int>(rank.value) == process; };
    for (const MoveOrder& move : orders.moves) {
      EXPECT_TRUE(move.kind == FileKind::container || move.kind == FileKind::parity);
      EXPECT_LT(move.logical_rank.value, kCounted);
      EXPECT_EQ(move.key.commit_id, kCommit);
      EXPECT_NE(move.from, move.to);
      EXPECT_TRUE(move.from == process || move.to == process);
      EXPECT_TRUE(is_holder(move.from) && is_holder(move.to));
    }
    for (const FetchOrder& fetch : orders.fetches) EXPECT_TRUE(owns(fetch.logical_rank));
    for (const SetOrder& order : orders.sets) {
      EXPECT_TRUE(owns(order.set.members.at(order.set.position).logical_rank));
      if (harm.flips == kHighest) {
        EXPECT_EQ(order.rebuild, order.set.protection_id == kLost);
      }
    }
    const bool rebuilds = std::ranges::any_of(orders.sets, &SetOrder::rebuild);
    if (harm.flips == kHighest && !outcome.anybody_refused()) {
      EXPECT_EQ(rebuilds, process <= 1);
    }
  }
}

TEST(WireDamage, WellThereAreAMoveARebuildAFetchAndAWholeSet) {
  expect_possible(homes_of({.exchange = -1, .flips = kHighest}), {.flips = kHighest});
  const Outcome<Orders> outcome = orders_of({.exchange = -1, .flips = kHighest});
  EXPECT_FALSE(outcome.anybody_refused());
  expect_possible(outcome, {.flips = kHighest});
  EXPECT_EQ(outcome.made[0].moves.size(), 1U);
  EXPECT_EQ(outcome.made[3].moves.size(), 1U);
  EXPECT_EQ(outcome.made[2].fetches.size(), 1U);
  EXPECT_EQ(outcome.made[1].sets.size(), 2U);
}

/// Bytes of all messages of an exchange, each in turn, the last one too, and an exchange gone astray.
template <class Run>
void expect_refused_or_harmless(int exchanges, int refused_min, Run&& run_with) {
  int refused = 0;
  const auto expect = [&](const Corruption& harm) {
    SCOPED_TRACE(::testing::Message() << "exchange " << harm.exchange << ", byte " << harm.byte << ", flips "
                                      << int{harm.flips});
    const auto outcome = run_with(harm);
    refused += outcome.anybody_refused() ? 1 : 0;
    expect_possible(outcome, harm);
    return outcome.anybody_was_harmed();
  };
  for (int exchange = 0; exchange < exchanges; ++exchange) {
    (void)expect({.exchange = exchange, .astray = true});
    for (const std::uint8_t flips : kFlips) {
      (void)expect({exchange, false, 0, flips, true});
      for (std::size_t byte = 0; byte < kBytesTried && expect({exchange, false, byte, flips}); ++byte) continue;
    }
  }
  EXPECT_GT(refused, refused_min);
}

TEST(WireDamage, ARecordOnTheWayToAHomeIsRefusedOrHarmless) {
  expect_refused_or_harmless(kExchangesOfHomes, 50, homes_of);
}

TEST(WireDamage, AnOrderOnItsWayIsRefusedOrHarmless) { expect_refused_or_harmless(kExchangesOfOrders, 20, orders_of); }

}  // namespace
}  // namespace kedge::recovery::wire_damage_test
