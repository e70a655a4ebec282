// What a sparse exchange costs each of 256 ranks, and that it is right when ranks come late, exchanges follow each
// other, a rank fails or a deadline passes.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/hosted/hosted_ranks.hpp"
#include "kedge/error.hpp"
#include "kedge/testing/in_process_world.hpp"

namespace kedge::comm::sparse_exchange_test {
namespace {

constexpr int kRanks = 256;

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

/// What one rank has sent.
struct Cost {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// Counts what goes through it.
class CountingTransport final : public Transport {
 public:
  CountingTransport(std::unique_ptr<Transport> inner, Cost& cost) : inner_(std::move(inner)), cost_(cost) {}

  [[nodiscard]] int rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] int size() const noexcept override { return inner_->size(); }
  [[nodiscard]] std::string library() const override { return inner_->library(); }
  [[nodiscard]] std::unique_ptr<Transport> open_channel(Deadline deadline) override {
    return std::make_unique<CountingTransport>(inner_->open_channel(deadline), cost_);
  }
  [[nodiscard]] std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) override {
    ++cost_.messages;
    cost_.bytes += bytes.size();
    return inner_->send(to, tag, bytes);
  }
  [[nodiscard]] std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) override {
    return inner_->receive(from, tag, bytes);
  }

 private:
  std::unique_ptr<Transport> inner_;
  Cost& cost_;
};

/// What each rank sent in `body`, and in it alone; each throws nothing.
std::vector<Cost> costs(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Cost> costs(static_cast<std::size_t>(ranks));
  HostedRanks hosted(std::vector<int>(costs.size(), 0), nullptr);
  rethrow_cause(hosted.run(
      [&](int rank, std::unique_ptr<Transport> transport) {
        Cost& cost = costs[static_cast<std::size_t>(rank)];
        const auto communicator = make_communicator(std::make_unique<CountingTransport>(std::move(transport), cost));
        communicator->connect(soon());
        cost = {};
        body(*communicator);
      },
      std::chrono::seconds(60)));
  return costs;
}

std::vector<std::byte> text(int from, int to, int round) {
  std::string words = std::to_string(from) + " to " + std::to_string(to) + " in " + std::to_string(round);
  if (round > 0) words.append(static_cast<std::size_t>((from + to) % 7) * 100, '.');
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

/// Every rank sends one message to each of `to`, and gets those of all who have it in theirs.
void exchange(Communicator& communicator, int round, const std::function<std::vector<int>(int rank)>& to) {
  const int rank = communicator.rank();
  std::vector<Communicator::Message> messages;
  for (const int peer : to(rank)) messages.push_back({peer, text(rank, peer, round)});
  const auto received = communicator.sparse_exchange(std::move(messages), soon());
  std::size_t next = 0;
  for (int from = 0; from < communicator.size(); ++from) {
    for (const int peer : to(from)) {
      if (peer != rank) continue;
      ASSERT_LT(next, received.size());
      EXPECT_EQ(received[next].peer, from);
      EXPECT_EQ(received[next].bytes, text(from, rank, round)) << from << " to " << rank;
      ++next;
    }
  }
  EXPECT_EQ(next, received.size());
}

/// Of each rank: two messages in each of log2(ranks) rounds, 24 bytes for each announcement that it passes on, and its
/// own messages, of which each has at most 40 bytes.
void expect_costs_within(const std::vector<Cost>& costs, std::uint64_t announcements, std::uint64_t messages) {
  const auto rounds = static_cast<std::uint64_t>(std::bit_width(costs.size() - 1));
  for (std::size_t rank = 0; rank < costs.size(); ++rank) {
    EXPECT_LE(costs[rank].messages, 2 * rounds + messages) << rank;
    EXPECT_LE(costs[rank].bytes, 16 * rounds + 24 * announcements + 40 * messages) << rank;
  }
}

TEST(SparseExchange, CostsRanksThatSendNothingOnlyTheRounds) {
  const auto nobody = [](int) { return std::vector<int>(); };
  expect_costs_within(costs(kRanks, [&](Communicator& communicator) { exchange(communicator, 0, nobody); }), 0, 0);
}

/// No message is announced to the same rank twice on its way.
TEST(SparseExchange, CostsWhatItsFewMessagesCost) {
  const auto few = [](int rank) { return rank % 64 == 3 ? std::vector<int>{rank / 2, rank, 200} : std::vector<int>(); };
  expect_costs_within(costs(kRanks, [&](Communicator& communicator) { exchange(communicator, 0, few); }), 12, 3);
}

/// As ranks ask homes: each message is passed on by half of log2(ranks) ranks, spread over all of them.
TEST(SparseExchange, CostsEachRankItsShareWhereAllSend) {
  const auto homes = [](int rank) {
    return std::vector<int>{rank * 7919 % kRanks, (rank * 104729 + 5) % kRanks, (rank + 1) % kRanks};
  };
  expect_costs_within(costs(kRanks, [&](Communicator& communicator) { exchange(communicator, 0, homes); }), 40, 3);
}

class SparseExchangeOf : public ::testing::TestWithParam<int> {};

/// Every pair of ranks once, in rounds that follow each other at once, while some ranks are late.
TEST_P(SparseExchangeOf, DeliversWhatIsSentAtAnyDistanceWhileRanksAreLate) {
  const int ranks = GetParam();
  static_cast<void>(costs(ranks, [&](Communicator& communicator) {
    for (int round = 0; round < ranks; ++round) {
      if (communicator.rank() == round) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      exchange(communicator, round, [&](int rank) {
        std::vector<int> to((rank + round) % 3 == 0 ? 0U : 2U, (rank + round) % ranks);  // two of one sender, or none
        to.push_back((rank * round) % ranks);
        return to;
      });
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SparseExchangeOf, ::testing::Values(1, 2, 3, 4, 5, 7, 8, 12, 16, 17),
                         ::testing::PrintToStringParamName());

/// At each event of its own. In virtual time; whoever returns has got all that was sent to it.
TEST(SparseExchange, OfADeadRankEndsOnAllOthersByTheDeadline) {
  for (std::uint64_t event = 0;; ++event) {
    testing::InProcessWorld world(5);
    world.stop_at(3, event, testing::StopKind::die);
    const auto outcomes = world.run_connected([](Communicator& communicator) {
      for (int round = 0; round < 2; ++round) {
        exchange(communicator, round, [](int rank) { return std::vector<int>{(rank + 1) % 5, (rank + 3) % 5}; });
      }
    });
    if (!outcomes[3].died) break;
    for (const auto& outcome : outcomes) {
      if (!outcome.failure) continue;
      EXPECT_EQ(outcome.failure->code, ErrorCode::timeout) << outcome.failure->message;
    }
    ASSERT_LT(event, 200U);
  }
}

TEST(SparseExchange, TimesOutWhereARankDoesNotComeAndNamesARank) {
  std::atomic<int> timed_out = 0;
  static_cast<void>(costs(4, [&](Communicator& communicator) {
    if (communicator.rank() == 2) {
      while (timed_out < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    try {
      (void)communicator.sparse_exchange({}, Deadline::after(std::chrono::milliseconds(100)));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      EXPECT_NE(error.failure().message.find("timed out waiting for rank "), std::string::npos)
          << error.failure().message;
    }
    ++timed_out;
  }));
}

}  // namespace
}  // namespace kedge::comm::sparse_exchange_test
