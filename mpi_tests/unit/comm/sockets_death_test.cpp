// Ranks that die, that end their part, or that fail during a call: the others get that rank's reason over TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/attempt.hpp"
#include "comm/sockets/frame.hpp"
#include "comm/sockets/socket.hpp"
#include "harness/socket_ranks.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::sockets_death_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::run_socket_ranks;
using testing::socket_plans;
using Bytes = std::vector<std::byte>;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

/// All ranks in a row wait for the next one, and the last for nobody: it dies.
TEST(SocketsDeath, OfARankIsHeardByAllThatWaitAndNamed) {
  constexpr int kRanks = 5;
  std::atomic<int> waiting = 0;
  const auto failures = run_socket_ranks(socket_plans(kRanks), [&](SocketTransport& transport) {
    Bytes sent(4000000);
    Bytes received(1);
    const int rank = transport.rank();
    // Connections with both neighbours first.
    const auto exchange = [&](int other) {
      const auto out = transport.send(other, 1, received);
      ASSERT_TRUE(transport.receive(other, 1, received)->wait(soon()) && out->wait(soon()));
    };
    if (rank > 0) exchange(rank - 1);
    if (rank + 1 < kRanks) exchange(rank + 1);
    ++waiting;
    if (rank + 1 == kRanks) {
      while (waiting < kRanks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto unfinished = transport.send(rank - 1, 2, sent);  // nobody receives it
      EXPECT_FALSE(unfinished->test());
      return;
    }
    (void)transport.receive(rank + 1, 3, received)->wait(soon());
  });
  EXPECT_FALSE(failures.back());
  for (int rank = 0; rank + 1 < kRanks; ++rank) {
    const auto& failure = failures[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(failure) << rank;
    EXPECT_EQ(failure->code, ErrorCode::rank_failed);
    EXPECT_THAT(failure->message, AnyOf(HasSubstr("rank 4 closed its connection"), HasSubstr("rank 4 lost its"),
                                        HasSubstr("rank 4 has died (reported by rank")));
  }
}

/// Ranks in a row, each of which knows its neighbours only: what the last one says is passed on as it is.
TEST(SocketsDeath, ARankThatFailsIsHeardByAllInItsOwnWords) {
  constexpr int kRanks = 4;
  for (const std::size_t length : {std::size_t{30}, std::size_t{kReasonBytesMax}, std::size_t{3000}}) {
    const std::string why = "rank 3 failed: " + std::string(length, 'x');
    std::atomic<int> ended = 0;
    const auto failures = run_socket_ranks(socket_plans(kRanks), [&](SocketTransport& transport) {
      Bytes one(1);
      const int rank = transport.rank();
      const auto exchange = [&](int other) {
        const auto out = transport.send(other, 1, one);
        ASSERT_TRUE(transport.receive(other, 1, one)->wait(soon()) && out->wait(soon()));
      };
      if (rank > 0) exchange(rank - 1);
      if (rank + 1 < kRanks) exchange(rank + 1);
      if (rank + 1 == kRanks) transport.leave(why);
      const auto failure = attempt([&] { (void)transport.receive((rank + 1) % kRanks, 2, one)->wait(soon()); });
      ++ended;
      while (ended < kRanks) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // no connection ends before
      if (failure) throw Error(*failure);
    });
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto& failure = failures[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(failure) << rank;
      EXPECT_EQ(failure->code, ErrorCode::rank_failed);
      EXPECT_EQ(failure->message, rank + 1 == kRanks ? why : why.substr(0, kReasonBytesMax)) << rank;
    }
  }
}

TEST(SocketsDeath, BeforeTheFirstMessage) {
  auto plans = socket_plans(2);
  plans[1].listener.close();
  Mesh mesh(std::move(plans[0]));
  Bytes one(1);
  const auto receive = mesh.receive(1, {0, 1}, one);
  const auto failure = attempt([&] { (void)mesh.wait(*receive, soon()); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::rank_failed);
  EXPECT_THAT(failure->message, HasSubstr("rank 1 cannot be reached at 127.0.0.1 port"));
}

TEST(SocketsDeath, WhereAnotherProgramListensNowNothingIsSent) {
  auto plans = socket_plans(2);
  const Socket listener = std::move(plans[1].listener);
  Mesh mesh(std::move(plans[0]));
  Bytes one(1);
  const auto sent = mesh.send(1, {0, 1}, one);
  std::optional<Failure> failure;
  std::size_t bytes_that_came = 0;
  std::jthread other([&] {
    Socket taken;
    while (!taken.is_open()) taken = std::move(accept_connection(listener).socket);
    Welcome welcome;  // without the job's token
    (void)send_some(taken, std::as_bytes(std::span(&welcome, 1)), {});
    std::array<std::byte, 1000> bytes{};
    for (TransferResult moved; !moved.has_ended; moved = receive_some(taken, bytes)) bytes_that_came += moved.bytes;
  });
  failure = attempt([&] { (void)mesh.wait(*sent, soon()); });
  other.join();
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, HasSubstr("rank 1 has died: another program now listens"));
  EXPECT_EQ(bytes_that_came, sizeof(Greeting));
}

/// An engine that is destroyed while nothing is under way does not disturb what others still do with each other.
TEST(SocketsDeath, ARankThatEndsItsPartFailsThoseWhoWaitForItAlone) {
  const auto failures = run_socket_ranks(socket_plans(3), [&](SocketTransport& transport) {
    Bytes one(1);
    const auto meet = [&](int other, int tag) {
      const auto out = transport.send(other, tag, one);
      ASSERT_TRUE(transport.receive(other, tag, one)->wait(soon()) && out->wait(soon()));
    };
    for (int other = 0; other < 3; ++other) {
      if (other != transport.rank()) meet(other, 1);
    }
    if (transport.rank() == 2) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it has ended by then
    meet(1 - transport.rank(), 2);
    (void)transport.receive(2, 4, one)->wait(soon());
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto& failure = failures[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::rank_failed);
    EXPECT_THAT(failure->message, HasSubstr("rank 2 shut down its engine while rank"));
  }
}

/// What rank 0, which waits for a message from rank 1, hears when that one ends, after it has waited for one from
/// `source`, that never comes, by `look`.
Failure heard_at_the_end_of_the_other(int source, bool (*look)(Mesh& mesh, const MessageState& message)) {
  auto plans = socket_plans(3);
  Mesh a(std::move(plans[0]));
  auto b = std::make_unique<Mesh>(std::move(plans[1]));
  Mesh c(std::move(plans[2]));
  Bytes one(1);
  Bytes other(1);
  Bytes third(1);
  const auto nothing = a.receive(1, {0, 1}, one);  // which connects
  const auto never = b->receive(source, {0, 2}, other);
  const auto idle = c.receive(1, {0, 1}, third);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(a.test(*nothing));
    EXPECT_FALSE(c.test(*idle));
    EXPECT_FALSE(look(*b, *never));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  b.reset();
  return attempt([&] { (void)a.wait(*nothing, soon()); }).value_or(Failure{});
}

TEST(SocketsDeath, ARankThatHasOnlyBeenConnectedToSaysGoodbyeToo) {
  const Failure heard =
      heard_at_the_end_of_the_other(2, [](Mesh& mesh, const MessageState& message) { return mesh.test(message); });
  EXPECT_THAT(heard.message, HasSubstr("rank 1 shut down its engine while rank"));
}

/// It was the first to time out: the others would look for a mistake in how the program ends.
TEST(SocketsDeath, ARankThatGaveUpOnAMessageDoesNotLeaveInOrder) {
  const Failure heard = heard_at_the_end_of_the_other(0, [](Mesh& mesh, const MessageState& message) {
    return mesh.wait(message, Deadline::after(std::chrono::milliseconds(1)));
  });
  EXPECT_THAT(heard.message, AnyOf(HasSubstr("rank 1 closed its connection"), HasSubstr("rank 1 lost its")));
}

}  // namespace
}  // namespace kedge::comm::sockets_death_test
