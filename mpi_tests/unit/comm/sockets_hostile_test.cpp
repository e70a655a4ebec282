// Other programs that connect to a rank, and ranks that send malformed data or nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/sockets/frame.hpp"
#include "harness/socket_ranks.hpp"
#include "harness/unknown_client.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::sockets_hostile_test {
namespace {

using testing::greeting;
using ::testing::HasSubstr;
using testing::run_socket_ranks;
using testing::socket_plans;
using testing::UnknownClient;
using Bytes = std::vector<std::byte>;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

TEST(SocketsHostile, WhoeverDoesNotShowTheTokenIsClosedAndHurtsNobody) {
  auto plans = socket_plans(2);
  const auto address = plans[0].addresses[0];
  const Id128 token = plans[0].token;
  std::atomic<bool> over = false;
  std::vector<bool> closed;
  std::jthread outside([&] {
    const std::string http = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
    Id128 nearly = token;
    nearly.bytes.back() ^= 1U;
    Greeting other = greeting(token, 1, 0);
    other.magic ^= 1U;
    std::vector<UnknownClient> strangers;
    for (int i = 0; i < 7; ++i) strangers.emplace_back(address);
    strangers[0].say(std::as_bytes(std::span(http)));
    strangers[1].say(greeting(nearly, 1, 0));
    strangers[2].say(greeting(Id128{}, 1, 0));
    strangers[3].say(greeting(token, 0, 0));  // itself
    strangers[4].say(greeting(token, 2, 0));  // a rank that does not exist
    strangers[5].say(greeting(token, 0, 1));  // somebody else is wanted
    strangers[6].say(other);
    for (UnknownClient& stranger : strangers) closed.push_back(stranger.is_closed(soon()));
    over = true;
  });
  const auto failures = run_socket_ranks(std::move(plans), [&](SocketTransport& transport) {
    Bytes sent(100000, std::byte{5});
    Bytes received(sent.size());
    for (std::uint64_t last = 0; last == 0;) {  // until both know that it is over
      if (transport.rank() == 0) last = over ? 1 : 0;
      std::memcpy(sent.data(), &last, sizeof last);
      const auto out = transport.send(1 - transport.rank(), 1, sent);
      const auto in = transport.receive(1 - transport.rank(), 1, received);
      ASSERT_TRUE(out->wait(soon()) && in->wait(soon()));
      if (transport.rank() == 1) std::memcpy(&last, received.data(), sizeof last);
    }
  });
  outside.join();
  for (const auto& failure : failures) EXPECT_FALSE(failure) << failure->message;
  EXPECT_EQ(closed, std::vector<bool>(7, true));
}

TEST(SocketsHostile, AConnectionThatSaysNothingIsClosedAfterAWhileAndManyAtOnce) {
  auto plans = socket_plans(2);
  ConnectionAcceptor greeter(std::move(plans[0].listener), 0, 2, plans[0].token, plans[0].welcome_token);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<UnknownClient> silent;
  const auto turn = [&](std::chrono::milliseconds after) {
    std::size_t admitted = 0;
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      admitted += greeter.accept_ranks(begin + after).size();
    }
    return admitted;
  };
  silent.emplace_back(plans[0].addresses[0]);
  silent.back().say(std::byte{0x4b});
  EXPECT_EQ(turn(std::chrono::milliseconds(0)), 0U);
  EXPECT_EQ(turn(ConnectionAcceptor::kGreetingTimeout - std::chrono::milliseconds(1)), 0U);
  EXPECT_FALSE(silent.back().is_closed(Deadline::after(std::chrono::milliseconds(20))));
  EXPECT_EQ(turn(ConnectionAcceptor::kGreetingTimeout), 0U);
  EXPECT_TRUE(silent.back().is_closed(soon()));
  silent.clear();
  for (std::size_t i = 0; i < ConnectionAcceptor::kUnidentifiedMax + 20; ++i)
    silent.emplace_back(plans[0].addresses[0]);
  EXPECT_EQ(turn(std::chrono::milliseconds(0)), 0U);
  for (std::size_t i = 0; i < silent.size(); ++i) {
    const auto deadline = i < 20 ? soon() : Deadline::after(std::chrono::milliseconds(0));
    EXPECT_EQ(silent[i].is_closed(deadline), i < 20) << i;  // the oldest
  }
  UnknownClient rank(plans[0].addresses[0]);
  rank.say(greeting(plans[0].token, 1, 0));
  EXPECT_EQ(turn(std::chrono::milliseconds(0)), 1U);
  EXPECT_TRUE(rank.is_welcomed(soon()));
}

TEST(SocketsHostile, ARankThatWasClosedBeforeItWasWelcomedConnectsAgain) {
  auto plans = socket_plans(2);
  Mesh a(std::move(plans[0]));
  Bytes one(1);
  const auto sent = a.send(1, {0, 1}, one);
  const auto deadline = soon();
  for (int closed = 0; closed < 3 && !deadline.passed();) {
    EXPECT_FALSE(a.test(*sent));
    if (accept_connection(plans[1].listener).socket.is_open()) ++closed;
  }
  Mesh b(std::move(plans[1]));
  const auto received = b.receive(0, {0, 1}, one);
  while (!b.test(*received) && !deadline.passed()) (void)a.test(*sent);
  EXPECT_TRUE(received->is_done);
}

/// What rank 0 gets that waits for rank 1, of which `says` plays the part after it was welcomed.
std::optional<Failure> failure_after(const std::function<void(UnknownClient& rank)>& says) {
  auto plans = socket_plans(2);
  const auto address = plans[0].addresses[0];
  const Greeting hello = greeting(plans[0].token, 1, 0);
  Mesh mesh(std::move(plans[0]));
  Bytes target(100);
  const auto receive = mesh.receive(1, {0, 77}, target);
  std::jthread other([&] {
    UnknownClient rank(address);
    rank.say(hello);
    if (rank.is_welcomed(soon())) says(rank);
    (void)rank.is_closed(soon());
  });
  const auto failure = attempt([&] { (void)mesh.wait(*receive, soon()); });
  mesh.interrupt();
  return failure;
}

TEST(SocketsHostile, AFrameThatCannotBeEndsTheConnectionAndNamesTheRank) {
  struct Bad {
    FrameHead head;
    std::string fault;
  };
  const std::vector<Bad> all = {
      {{.magic = 7}, "bad magic number"},
      {{.kind = static_cast<FrameKind>(0)}, "unknown kind"},
      {{.kind = static_cast<FrameKind>(9)}, "unknown kind"},
      {{.tag = 4096}, "bad tag"},
      {{.padding = 1}, "bad padding"},
      {{.size = kSmallMessageBytes + 1}, "message too large"},
      {{.size = ~std::uint64_t{0}}, "message too large"},
      {{.kind = FrameKind::offer, .id = 2}, "offers out of order"},
      {{.kind = FrameKind::accept, .id = 1}, "an answer to nothing"},
      {{.kind = FrameKind::refuse, .id = 1}, "an answer to nothing"},
      {{.kind = FrameKind::data, .size = 1, .id = 1}, "unexpected data"},
      {{.kind = FrameKind::credit, .size = 1}, "credit for data that was not sent"},
      {{.kind = FrameKind::credit, .size = ~std::uint64_t{0}}, "bad credit"},
      {{.kind = FrameKind::lost, .id = 2}, "a rank that does not exist"},
      {{.kind = FrameKind::lost, .size = kReasonBytesMax + 1, .id = 1}, "reason too long"},
  };
  for (const Bad& bad : all) {
    const auto failure = failure_after([&](UnknownClient& rank) { rank.say(bad.head); });
    ASSERT_TRUE(failure) << bad.fault;
    EXPECT_EQ(failure->code, ErrorCode::rank_failed) << failure->message;
    EXPECT_THAT(failure->message, HasSubstr("rank 1 sent malformed data (" + bad.fault));
  }
}

TEST(SocketsHostile, MoreThanWasAllowedIsNotKept) {
  const auto many_small = failure_after([](UnknownClient& rank) {
    const Bytes bytes(60000);
    for (int i = 0; i < 5; ++i) {
      rank.say(FrameHead{.tag = 1, .size = bytes.size()});
      rank.say(std::span(bytes));
    }
  });
  ASSERT_TRUE(many_small);
  EXPECT_THAT(many_small->message, HasSubstr("more small messages than were allowed"));
  const auto many_offers = failure_after([](UnknownClient& rank) {
    for (std::uint64_t id = 1; id <= kOffersMax + 1; ++id) {
      rank.say(FrameHead{.kind = FrameKind::offer, .tag = 1, .size = 100, .id = id});
    }
  });
  ASSERT_TRUE(many_offers);
  EXPECT_THAT(many_offers->message, HasSubstr("too many offers"));
  // Of another size than was offered, in memory that has room for it.
  const auto another_size = failure_after([](UnknownClient& rank) {
    rank.say(FrameHead{.kind = FrameKind::offer, .tag = 77, .size = 100, .id = 1});
    rank.say(FrameHead{.kind = FrameKind::data, .size = 99, .id = 1});
  });
  ASSERT_TRUE(another_size);
  EXPECT_THAT(another_size->message, HasSubstr("unexpected data"));
}

TEST(SocketsHostile, AFrameThatIsCutOffIsADeath) {
  const auto bytes_of = [](const FrameHead& head) {
    const auto bytes = std::as_bytes(std::span(&head, 1));
    return Bytes(bytes.begin(), bytes.end());
  };
  const Bytes small = bytes_of({.tag = 77, .size = 50});
  Bytes large = bytes_of({.kind = FrameKind::offer, .tag = 77, .size = 100, .id = 1});
  std::ranges::copy(bytes_of({.kind = FrameKind::data, .size = 100, .id = 1}), std::back_inserter(large));
  large.resize(large.size() + 60);
  std::vector<Bytes> all{large};
  for (const std::size_t bytes : {std::size_t{1}, small.size() - 1, small.size()}) {
    all.emplace_back(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  for (const Bytes& bytes : all) {
    auto plans = socket_plans(2);
    Mesh mesh(std::move(plans[0]));
    Bytes target(100);
    const auto receive = mesh.receive(1, {0, 77}, target);
    std::jthread other([&] {
      UnknownClient rank(plans[1].addresses[0]);
      rank.say(greeting(plans[1].token, 1, 0));
      if (rank.is_welcomed(soon())) rank.say(std::span(bytes));
    });
    const auto failure = attempt([&] { (void)mesh.wait(*receive, soon()); });
    ASSERT_TRUE(failure) << bytes.size();
    EXPECT_EQ(failure->code, ErrorCode::rank_failed);
    EXPECT_THAT(failure->message, HasSubstr("rank 1 closed its connection in the middle of a message"));
  }
}

TEST(SocketsHostile, ASecondConnectionOfTheSameRankChangesNothing) {
  auto plans = socket_plans(2);
  const auto address = plans[0].addresses[0];
  const Greeting hello = greeting(plans[0].token, 1, 0);
  std::atomic<bool> connected = false;
  std::atomic<bool> over = false;
  std::jthread outside;
  const auto failures = run_socket_ranks(std::move(plans), [&](SocketTransport& transport) {
    Bytes sent(1);
    Bytes received(1);
    for (bool last = false; !last;) {
      const auto out = transport.send(1 - transport.rank(), 1, sent);
      const auto in = transport.receive(1 - transport.rank(), 1, received);
      ASSERT_TRUE(out->wait(soon()) && in->wait(soon()));
      if (transport.rank() == 0 && !connected.exchange(true)) {
        outside = std::jthread([&] {
          UnknownClient second(address);
          second.say(hello);
          second.say(FrameHead{.magic = 7});
          EXPECT_TRUE(second.is_closed(soon()));
          over = true;
        });
      }
      std::array<std::byte, 1> end{std::byte{static_cast<unsigned char>(over ? 1 : 0)}};
      const auto tell = transport.rank() == 0 ? transport.send(1, 2, end) : transport.receive(0, 2, end);
      ASSERT_TRUE(tell->wait(soon()));
      last = end.front() == std::byte{1};
    }
  });
  outside.join();
  for (const auto& failure : failures) EXPECT_FALSE(failure) << failure->message;
}

}  // namespace
}  // namespace kedge::comm::sockets_hostile_test
