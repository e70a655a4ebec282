// Messages over TCP: every check of a communicator, order, all sizes, both ways at once, bounded memory, interrupts,
// few descriptors; how ranks find a network, and that all of them hear why there is none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/attempt.hpp"
#include "comm/group.hpp"
#include "comm/sockets/join.hpp"
#include "comm/sockets/network_address.hpp"
#include "harness/communicator_contract.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/socket_ranks.hpp"
#include "harness/thread_transport.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::sockets_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::run_socket_ranks;
using testing::socket_plans;
using Bytes = std::vector<std::byte>;

TEST(Networks, TheFastestIsTriedFirst) {
  const NetworkAddress address{{10, 0, 0, 1}, 0};
  const std::vector<NetworkInterface> interfaces{{"lo", address, 8, true, 0},
                                                 {"admin", address, 24, false, 1'000},
                                                 {"tunnel", address, 24, false, 0},
                                                 {"ib0", address, 16, false, 100'000},
                                                 {"ib1", address, 16, false, 100'000}};
  EXPECT_THAT(networks_of(interfaces),
              ElementsAre("ib0@10.0.0.1/16", "ib1@10.0.0.1/16", "admin@10.0.0.1/24", "tunnel@10.0.0.1/24"));
}

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

Bytes pattern(std::size_t size, std::size_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + seed * 7 + (i >> 8U)) & 0xffU);
  return bytes;
}

void expect_no_failure(const std::vector<std::optional<Failure>>& failures) {
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    EXPECT_FALSE(failures[rank]) << "rank " << rank << ": " << failures[rank]->message;
  }
}

class SocketsContract : public ::testing::TestWithParam<std::tuple<contract::Case, int>> {};

TEST_P(SocketsContract, BlockedCalls) {
  const auto& [contract, ranks] = GetParam();
  std::latch done(ranks);
  expect_no_failure(run_socket_ranks(socket_plans(ranks), [&, which = contract](SocketTransport& transport) {
    const auto communicator = make_communicator(transport.open_channel(soon()));
    const auto failure = attempt([&] {
      communicator->connect(soon());
      which.check(*communicator);
    });
    // As finalize: a rank that leaves while others are still within a call may be taken for dead by them.
    done.arrive_and_wait();
    if (failure) throw Error(*failure);
  }));
}

INSTANTIATE_TEST_SUITE_P(All, SocketsContract,
                         ::testing::Combine(::testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                                            ::testing::Values(1, 2, 3, 5, 8)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "On" + std::to_string(std::get<1>(test.param));
                         });

/// Sizes on both sides of each limit.
const std::vector<std::size_t> kSizes = {
    0, 1, 4096, kSmallMessageBytes, kSmallMessageBytes + 1, 3, 40000, 300000, 7, kSmallMessageBytes, 60000, 5000000};

TEST(Sockets, MessagesOfOneSenderAndTagStayInOrderWhateverTheirSizes) {
  expect_no_failure(run_socket_ranks(socket_plans(2), [](SocketTransport& transport) {
    constexpr int kRounds = 5;
    std::vector<Bytes> messages;
    std::vector<std::unique_ptr<Transport::Transfer>> transfers;
    for (std::size_t i = 0; i < kRounds * kSizes.size(); ++i) {
      const std::size_t size = kSizes[i % kSizes.size()];
      if (transport.rank() == 0) {
        messages.push_back(pattern(size, i));
        transfers.push_back(transport.send(1, 5, messages.back()));
      } else {
        messages.emplace_back(size + i % 3);  // a receive may have more room than it needs
        transfers.push_back(transport.receive(0, 5, messages.back()));
      }
    }
    for (auto& transfer : transfers) ASSERT_TRUE(transfer->wait(soon()));
    for (std::size_t i = 0; transport.rank() == 1 && i < messages.size(); ++i) {
      messages[i].resize(kSizes[i % kSizes.size()]);
      EXPECT_EQ(messages[i], pattern(messages[i].size(), i)) << i;
    }
  }));
}

TEST(Sockets, LargeMessagesGoBothWaysAtOnce) {
  expect_no_failure(run_socket_ranks(socket_plans(3), [](SocketTransport& transport) {
    constexpr std::size_t kBytes = std::size_t{32} << 20U;
    const int next = (transport.rank() + 1) % 3;
    const int previous = (transport.rank() + 2) % 3;
    const auto mine = pattern(kBytes, static_cast<std::size_t>(transport.rank()));
    Bytes from_next(kBytes);
    Bytes from_previous(kBytes);
    const auto a = transport.send(next, 1, mine);
    const auto b = transport.send(previous, 1, mine);
    const auto c = transport.receive(next, 1, from_next);
    const auto d = transport.receive(previous, 1, from_previous);
    for (const auto& transfer : {a.get(), b.get(), c.get(), d.get()}) ASSERT_TRUE(transfer->wait(soon()));
    EXPECT_EQ(from_next, pattern(kBytes, static_cast<std::size_t>(next)));
    EXPECT_EQ(from_previous, pattern(kBytes, static_cast<std::size_t>(previous)));
  }));
}

TEST(Sockets, AFastSenderIsHeldBackAndNotWhatComesAfter) {
  std::promise<std::size_t> done_early;
  auto early = done_early.get_future();
  expect_no_failure(run_socket_ranks(socket_plans(2), [&](SocketTransport& transport) {
    constexpr std::size_t kMany = 200;
    const auto message = pattern(60000, 1);
    if (transport.rank() == 0) {
      std::vector<std::unique_ptr<Transport::Transfer>> transfers;
      for (std::size_t i = 0; i < kMany; ++i) transfers.push_back(transport.send(1, 1, message));
      const auto last = transport.send(1, 2, std::span(message).first(8));
      ASSERT_TRUE(last->wait(soon()));  // on its own tag, behind all of them
      Bytes answer(1);
      ASSERT_TRUE(transport.receive(1, 3, answer)->wait(soon()));
      std::size_t done = 0;
      for (auto& transfer : transfers) done += transfer->test() ? 1U : 0U;
      done_early.set_value(done);
      for (auto& transfer : transfers) ASSERT_TRUE(transfer->wait(soon()));
      return;
    }
    Bytes target(message.size());
    ASSERT_TRUE(transport.receive(0, 2, target)->wait(soon()));  // all others are there, or offered
    ASSERT_TRUE(transport.send(0, 3, std::span(target).first(1))->wait(soon()));
    ASSERT_EQ(early.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    const std::size_t done = early.get();
    EXPECT_GT(done, 0U);
    EXPECT_LE(done * message.size(), kCreditBytes);
    for (std::size_t i = 0; i < kMany; ++i) {
      ASSERT_TRUE(transport.receive(0, 1, target)->wait(soon()));
      EXPECT_EQ(target, message);
    }
  }));
}

TEST(Sockets, AMessageThatIsTooLargeFailsItsReceiveAlone) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{1000000}}) {
    for (const bool is_late : {false, true}) {
      expect_no_failure(run_socket_ranks(socket_plans(2), [&](SocketTransport& transport) {
        const auto message = pattern(size, 3);
        Bytes small(size - 1);
        Bytes one(1);
        if (transport.rank() == 0) {
          if (!is_late) std::this_thread::sleep_for(std::chrono::milliseconds(50));
          const auto first = transport.send(1, 1, message);
          const auto second = transport.send(1, 1, std::span(message).first(size - 1));
          ASSERT_TRUE(transport.send(1, 2, one)->wait(soon()));
          EXPECT_TRUE(first->wait(soon()));
          EXPECT_TRUE(second->wait(soon()));
          return;
        }
        if (is_late) {
          ASSERT_TRUE(transport.receive(0, 2, one)->wait(soon()));
        }
        const auto failure = attempt([&] { (void)transport.receive(0, 1, small)->wait(soon()); });
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->code, ErrorCode::bad_state);
        EXPECT_THAT(failure->message, HasSubstr("bytes from rank 0 is larger than the"));
        ASSERT_TRUE(transport.receive(0, 1, small)->wait(soon()));
        EXPECT_TRUE(std::ranges::equal(small, std::span(message).first(size - 1)));
      }));
    }
  }
}

TEST(Sockets, AnInterruptEndsAWaitSoon) {
  std::atomic<int> over = 0;
  expect_no_failure(run_socket_ranks(socket_plans(2), [&](SocketTransport& transport) {
    Bytes target(1);
    const auto transfer = transport.receive(1 - transport.rank(), 1, target);  // nobody sends
    std::chrono::steady_clock::time_point begun;
    std::jthread interrupts([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      begun = std::chrono::steady_clock::now();
      transport.interrupt();
    });
    const auto failure = attempt([&] { (void)transfer->wait(Deadline::never()); });
    interrupts.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(500));
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::timeout);
    // Whoever goes first would be taken for dead.
    for (++over; over < 2;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }));
}

TEST(Sockets, ADeadlineThatPassesIsFalseAndTheMessageStillComes) {
  expect_no_failure(run_socket_ranks(socket_plans(2), [](SocketTransport& transport) {
    Bytes one(1);
    if (transport.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ASSERT_TRUE(transport.send(1, 1, one)->wait(soon()));
      return;
    }
    const auto transfer = transport.receive(0, 1, one);
    EXPECT_FALSE(transfer->test());
    EXPECT_FALSE(transfer->wait(Deadline::after(std::chrono::milliseconds(20))));
    EXPECT_TRUE(transfer->wait(soon()));
  }));
}

/// Descriptors of this process that are sockets or eventfds, and how many a started program would inherit.
std::pair<int, int> descriptors() {
  std::pair<int, int> counted{0, 0};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!what.starts_with("socket:") && what.find("eventfd") == std::string::npos) continue;
    ++counted.first;
    const int flags = ::fcntl(std::stoi(entry.path().filename().string()), F_GETFD);
    if ((flags & FD_CLOEXEC) == 0) ++counted.second;
  }
  return counted;
}

TEST(Sockets, DescriptorsAreFewNotInheritedAndClosed) {
  const auto before = descriptors();
  std::vector<MeshPlan> plans = socket_plans(4);
  std::vector<std::unique_ptr<Mesh>> meshes;
  for (MeshPlan& plan : plans) meshes.push_back(std::make_unique<Mesh>(std::move(plan)));
  EXPECT_EQ(descriptors().first - before.first, 4 * 2);  // a listener and an eventfd each
  Bytes one(1);
  const auto sent = meshes[0]->send(1, {0, 1}, one);
  const auto received = meshes[1]->receive(0, {0, 1}, one);
  const auto deadline = soon();
  while (!meshes[1]->test(*received) && !deadline.passed()) (void)meshes[0]->test(*sent);
  EXPECT_TRUE(received->is_done);
  // Between those that sent to each other alone: one for each direction, with two ends.
  EXPECT_LE(descriptors().first - before.first, 4 * 2 + 4);
  EXPECT_EQ(descriptors().second, before.second);
  meshes.clear();
  EXPECT_EQ(descriptors().first, before.first);
}

TEST(Sockets, TheChildOfAForkLeavesTheConnectionsAlone) {
  std::vector<MeshPlan> plans = socket_plans(2);
  auto a = std::make_unique<Mesh>(std::move(plans[0]));
  auto b = std::make_unique<Mesh>(std::move(plans[1]));
  Bytes one(1);
  const auto pass = [&](std::uint32_t tag) {
    const auto sent = a->send(1, {0, tag}, one);
    const auto received = b->receive(0, {0, tag}, one);
    const auto deadline = soon();
    while (!b->test(*received) && !deadline.passed()) (void)a->test(*sent);
    return received->is_done;
  };
  ASSERT_TRUE(pass(1));
  const ::pid_t child = ::fork();
  if (child == 0) {
    a.reset();
    b.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(pass(2));
  // While another child has all descriptors still, the end of a rank is seen all the same.
  const ::pid_t idle = ::fork();
  if (idle == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto never = b->receive(0, {0, 3}, one);
  a.reset();
  const auto failure = attempt([&] { (void)b->wait(*never, soon()); });
  ::kill(idle, SIGKILL);
  ::waitpid(idle, &status, 0);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::rank_failed) << failure->message;
}

/// Over a group whose messages go through memory.
std::vector<JoinResult> join(int ranks, const std::string& interfaces) {
  testing::ThreadMessages messages(ranks);
  std::vector<JoinResult> joined(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::shared_ptr<Communicator> communicator = make_communicator(messages.transport(rank));
      communicator->connect(soon());
      JoinResult& mine = joined[static_cast<std::size_t>(rank)];
      mine = join_over_sockets(Group(communicator, std::chrono::seconds(40)), interfaces);
      if (mine.communicator) mine.communicator->barrier(soon());
    });
  }
  return joined;
}

TEST(SocketsJoin, RanksMeetOnAnyNetworkThatWorks) {
  for (const std::string interfaces : {"", "lo", "127.0.0.0/8", "no-such,10.255.0.0/30,lo"}) {
    for (const JoinResult& one : join(4, interfaces)) {
      ASSERT_TRUE(one.communicator) << interfaces << ": " << one.failure->message;
      EXPECT_EQ(one.communicator->size(), 4);
    }
  }
}

/// Comes late to what follows the exchange of tokens.
class LateCommunicator final : public testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override {
    ForwardingCommunicator::broadcast(bytes, root, deadline, group);
    if (bytes.size() == 2 * sizeof(Id128)) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
};

TEST(SocketsJoin, WhatDoesNotAnswerInTimeIsNoNetworkForAnyRank) {
  constexpr int kRanks = 3;
  testing::ThreadMessages messages(kRanks);
  std::vector<JoinResult> joined(kRanks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = make_communicator(messages.transport(rank));
      communicator->connect(soon());
      LateCommunicator late(*communicator);
      const Group group(rank == 2 ? static_cast<Communicator&>(late) : *communicator, std::chrono::seconds(4));
      joined[static_cast<std::size_t>(rank)] = join_over_sockets(group, "lo");  // tried for a second
      communicator->barrier(soon());
    });
  }
  threads.clear();
  for (const JoinResult& one : joined) {
    EXPECT_FALSE(one.communicator);
    ASSERT_TRUE(one.failure);
    EXPECT_THAT(one.failure->message, HasSubstr("lo: rank 0: "));
    EXPECT_EQ(one.failure->message, joined[0].failure->message);
  }
}

TEST(SocketsJoin, WhereThereIsNoneAllRanksHearWhy) {
  const auto joined = join(3, "no-such,203.0.113.0/30");
  for (const JoinResult& one : joined) {
    EXPECT_FALSE(one.communicator);
    ASSERT_TRUE(one.failure);
    EXPECT_THAT(one.failure->message, HasSubstr("no-such: rank 0: this host has no address on no-such"));
    EXPECT_THAT(one.failure->message, HasSubstr("203.0.113.0/30: rank 0: this host"));
  }
}

}  // namespace
}  // namespace kedge::comm::sockets_test
