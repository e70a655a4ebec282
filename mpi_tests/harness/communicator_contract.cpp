#include "harness/communicator_contract.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "base/keep_forever.hpp"
#include "comm/vote.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::contract {
namespace {

std::uint64_t unsigned_rank(const Communicator& communicator) {
  return static_cast<std::uint64_t>(communicator.rank());
}

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((seed * 131 + i * 7) & 0xffU);
  return bytes;
}

template <class Call>
Failure failure_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.failure();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void messages_of_a_duplicate_do_not_meet_those_of_the_original(Communicator& communicator) {
  const auto duplicate = communicator.duplicate(soon());
  const auto second = duplicate->duplicate(soon());
  EXPECT_EQ(duplicate->rank(), communicator.rank());
  EXPECT_EQ(duplicate->size(), communicator.size());
  const int next = (communicator.rank() + 1) % communicator.size();
  const int previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
  // Sent in one order and received in the other, all on one channel: only the communicator tells them apart.
  const std::vector<Communicator*> ways = {&communicator, duplicate.get(), second.get()};
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> received(ways.size(), std::vector<std::byte>(100));
  std::vector<Communicator::Request> requests;
  for (std::size_t i = 0; i < ways.size(); ++i) sent.push_back(pattern(100, i));
  for (std::size_t i = 0; i < ways.size(); ++i) requests.push_back(ways[i]->send(next, 7, sent[i]));
  for (std::size_t i = ways.size(); i-- > 0;) {
    auto request = ways[i]->receive(previous, 7, received[i]);
    ways[i]->wait(std::span(&request, 1), soon());
    EXPECT_EQ(received[i], sent[i]) << i;
  }
  for (std::size_t i = 0; i < ways.size(); ++i) ways[i]->wait(std::span(&requests[i], 1), soon());
  std::uint64_t ranks = 1;
  second->all_reduce(std::span(&ranks, 1), Reduction::sum, soon());
  EXPECT_EQ(ranks, static_cast<std::uint64_t>(communicator.size()));
}

void messages_arrive_in_order_per_peer_and_channel(Communicator& communicator) {
  const int size = communicator.size();
  const int next = (communicator.rank() + 1) % size;
  const int previous = (communicator.rank() + size - 1) % size;
  constexpr std::size_t kMessages = 5;
  std::vector<std::vector<std::byte>> received;
  std::vector<std::vector<std::byte>> sent;
  std::vector<Communicator::Request> requests;
  received.reserve(2 * kMessages);
  sent.reserve(2 * kMessages);
  for (std::size_t i = 0; i < 2 * kMessages; ++i) {
    const int channel = i < kMessages ? 1023 : 0;  // the channels are received in the other order
    received.emplace_back(i * 1000);
    requests.push_back(communicator.receive(previous, channel, received.back()));
  }
  for (std::size_t i = 0; i < 2 * kMessages; ++i) {
    const std::size_t which = (i + kMessages) % (2 * kMessages);
    sent.push_back(pattern(which * 1000, which + unsigned_rank(communicator)));
    requests.push_back(communicator.send(next, which < kMessages ? 1023 : 0, sent.back()));
  }
  communicator.wait(requests, soon());
  for (std::size_t i = 0; i < 2 * kMessages; ++i) {
    EXPECT_EQ(received[i], pattern(i * 1000, i + static_cast<std::uint64_t>(previous))) << i;
  }
  for (auto& request : requests) EXPECT_TRUE(request == nullptr && communicator.test(request));
}

void test_tells_when_a_message_is_there(Communicator& communicator) {
  std::vector<std::byte> received(3);
  auto request = communicator.receive(communicator.rank(), 7, received);
  EXPECT_FALSE(communicator.test(request));
  EXPECT_NE(request, nullptr);
  const auto sent = pattern(3, 1);
  auto send = communicator.send(communicator.rank(), 7, sent);
  communicator.wait(std::span(&send, 1), soon());
  while (!communicator.test(request)) continue;
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(received, sent);
}

void a_message_of_another_size_is_refused(Communicator& communicator) {
  for (const std::size_t size : {2U, 9U}) {
    std::vector<std::byte> received(5);
    const auto sent = pattern(size, 1);
    std::vector<Communicator::Request> requests;
    // Sent first: Open MPI 4.1 cuts a message to itself without a word if its receive is posted already.
    requests.push_back(communicator.send(communicator.rank(), 7, sent));
    requests.push_back(communicator.receive(communicator.rank(), 7, received));
    EXPECT_EQ(failure_of([&] { communicator.wait(requests, soon()); }).code, ErrorCode::bad_state);
    requests[1].reset();
    communicator.wait(requests, soon());
  }
}

void all_reduce_knows_every_reduction(Communicator& communicator) {
  const std::uint64_t rank = unsigned_rank(communicator);
  const auto size = static_cast<std::uint64_t>(communicator.size());
  const auto reduced = [&](std::uint64_t value, Reduction reduction) {
    std::vector<std::uint64_t> values{value, value + 1000};
    communicator.all_reduce(values, reduction, soon());
    return values;
  };
  EXPECT_EQ(reduced(rank + 5, Reduction::min), (std::vector<std::uint64_t>{5, 1005}));
  EXPECT_EQ(reduced(rank + 5, Reduction::max), (std::vector<std::uint64_t>{size + 4, size + 1004}));
  EXPECT_EQ(reduced(1, Reduction::sum), (std::vector<std::uint64_t>{size, size * 1001}));
  const std::uint64_t bit = std::uint64_t{1} << (63U - rank);
  std::uint64_t all_bits = 0;
  for (std::uint64_t i = 0; i < size; ++i) all_bits |= std::uint64_t{1} << (63U - i);
  EXPECT_EQ(reduced(bit, Reduction::bit_or)[0], all_bits);
  EXPECT_EQ(reduced(~bit, Reduction::bit_and)[0], ~all_bits);
  EXPECT_EQ(reduced(~bit, Reduction::max)[0], ~(std::uint64_t{1} << (64U - size)));  // all 64 bits count, unsigned
  communicator.all_reduce({}, Reduction::sum, soon());
}

void broadcast_reaches_all_from_any_root(Communicator& communicator) {
  for (int root = 0; root < communicator.size(); ++root) {
    for (const std::size_t size : {0U, 1U, 100000U}) {
      const auto expected = pattern(size, static_cast<std::uint64_t>(root));
      auto bytes = communicator.rank() == root ? expected : std::vector<std::byte>(size);
      communicator.broadcast(bytes, root, soon());
      EXPECT_EQ(bytes, expected);
    }
  }
}

void groups_are_rank_lists(Communicator& communicator) {
  // Odd and even ranks, each in descending order, at the same time; then all, in another order.
  std::vector<int> group;
  for (int rank = communicator.size() - 1; rank >= 0; --rank) {
    if (rank % 2 == communicator.rank() % 2) group.push_back(rank);
  }
  const auto sum = std::accumulate(group.begin(), group.end(), 0);
  std::uint64_t value = unsigned_rank(communicator);
  communicator.all_reduce(std::span(&value, 1), Reduction::sum, soon(), group);
  EXPECT_EQ(value, static_cast<std::uint64_t>(sum));
  for (const int root : group) {
    std::vector<std::byte> bytes(10);
    if (communicator.rank() == root) bytes = pattern(10, static_cast<std::uint64_t>(root));
    communicator.broadcast(bytes, root, soon(), group);
    EXPECT_EQ(bytes, pattern(10, static_cast<std::uint64_t>(root)));
  }
  communicator.barrier(soon(), group);
  std::vector<int> everybody(static_cast<std::size_t>(communicator.size()));
  std::iota(everybody.rbegin(), everybody.rend(), 0);
  value = 1;
  communicator.all_reduce(std::span(&value, 1), Reduction::sum, soon(), everybody);
  EXPECT_EQ(value, everybody.size());
  const std::vector<int> strangers{communicator.rank() + 1, communicator.rank() + 2};
  EXPECT_EQ(failure_of([&] { communicator.barrier(soon(), strangers); }).code, ErrorCode::invalid_argument);
  communicator.barrier(soon());
}

void wrong_ranks_and_channels_are_refused(Communicator& communicator) {
  std::vector<std::byte> bytes(1);
  const auto code = [&](int peer, int channel) {
    const auto sending = failure_of([&] { static_cast<void>(communicator.send(peer, channel, bytes)); }).code;
    const auto receiving = failure_of([&] { static_cast<void>(communicator.receive(peer, channel, bytes)); }).code;
    EXPECT_EQ(sending, receiving);
    return sending;
  };
  EXPECT_EQ(code(-1, 0), ErrorCode::invalid_argument);
  EXPECT_EQ(code(communicator.size(), 0), ErrorCode::invalid_argument);
  EXPECT_EQ(code(0, -1), ErrorCode::invalid_argument);
  EXPECT_EQ(code(0, 5000), ErrorCode::invalid_argument);
  EXPECT_EQ(failure_of([&] { communicator.broadcast(bytes, -1, soon()); }).code, ErrorCode::invalid_argument);
  const auto exchange = [&] { static_cast<void>(communicator.sparse_exchange({{communicator.size(), {}}}, soon())); };
  EXPECT_EQ(failure_of(exchange).code, ErrorCode::invalid_argument);
}

void sparse_exchange_delivers_what_was_sent(Communicator& communicator) {
  const int size = communicator.size();
  const int rank = communicator.rank();
  EXPECT_TRUE(communicator.sparse_exchange({}, soon()).empty());
  // Rounds follow at once, so that a fast rank is in the next while a slow one is in the last.
  for (int round = 0; round < 30; ++round) {
    const auto seed = [&](int from, int to, int index) {
      const int which = ((round * 8 + from) * 8 + to) * 4 + index;
      return static_cast<std::uint64_t>(which);
    };
    const auto count = [&](int from, int to) { return (from * 3 + to + round) % 4; };
    const auto length = [](std::uint64_t which) { return static_cast<std::size_t>(which % 3 * 1500); };
    std::vector<Communicator::Message> messages;
    for (int index = 3; index-- > 0;) {
      for (int to = size - 1; to >= 0; --to) {
        if (index >= count(rank, to)) continue;
        const auto which = seed(rank, to, index);
        messages.push_back({to, pattern(length(which), which)});
      }
    }
    const auto received = communicator.sparse_exchange(std::move(messages), soon());
    std::size_t next = 0;
    for (int from = 0; from < size; ++from) {
      for (int index = count(from, rank); index-- > 0;) {
        ASSERT_LT(next, received.size());
        const auto which = seed(from, rank, index);
        EXPECT_EQ(received[next].peer, from);
        EXPECT_EQ(received[next].bytes, pattern(length(which), which));
        ++next;
      }
    }
    EXPECT_EQ(next, received.size());
  }
}

void votes_give_the_failure_of_the_lowest_failing_rank(Communicator& communicator) {
  EXPECT_FALSE(vote(communicator, std::nullopt, soon()).has_value());
  const int size = communicator.size();
  for (int failing = 0; failing<(1 << size); failing += size> 3 ? 37 : 1) {
    std::optional<Failure> local;
    if ((failing >> communicator.rank() & 1) != 0) {
      local = Failure{ErrorCode::no_space, "store of " + std::to_string(communicator.rank()), -1,
                      "/store/" + std::to_string(communicator.rank()), 28};
    }
    const auto outcome = vote(communicator, local, soon());
    ASSERT_EQ(outcome.has_value(), failing != 0);
    if (!outcome) continue;
    int lowest = 0;
    while ((failing >> lowest & 1) == 0) ++lowest;
    EXPECT_EQ(outcome->code, ErrorCode::no_space);
    EXPECT_EQ(outcome->rank, lowest);
    EXPECT_EQ(outcome->message, "store of " + std::to_string(lowest));
    EXPECT_EQ(outcome->path, "/store/" + std::to_string(lowest));
    EXPECT_EQ(outcome->system_errno, 28);
  }
}

void votes_cut_long_texts_between_characters(Communicator& communicator) {
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "\xc3\xa4";
  for (const std::string prefix : {"", "x"}) {
    const std::string name = "/name" + prefix;  // of a path the beginning is cut
    const Failure local{ErrorCode::io, prefix + umlauts, -1, (prefix + umlauts).append(name), 5};
    const auto outcome = vote(communicator, local, soon());
    ASSERT_TRUE(outcome.has_value());
    EXPECT_GT(outcome->message.size(), 900U);
    EXPECT_LE(outcome->message.size() + outcome->path.size(), 2032U);
    EXPECT_EQ(outcome->message.substr(outcome->message.size() - 5), "\xc3\xa4...");
    EXPECT_EQ(outcome->path.substr(0, 5), "...\xc3\xa4");
    EXPECT_EQ(outcome->path.substr(outcome->path.size() - name.size()), name);
  }
}

void differences_are_found_and_named(Communicator& communicator) {
  std::vector<std::uint64_t> values{1, ~std::uint64_t{0}, 0};
  EXPECT_FALSE(first_difference(communicator, values, soon()).has_value());
  if (communicator.size() == 1) return;
  const int odd_one = communicator.size() - 1;
  if (communicator.rank() == odd_one) values[1] = 5;
  const auto difference = first_difference(communicator, values, soon());
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->index, 1U);
  EXPECT_EQ(difference->rank_a, 0);
  EXPECT_EQ(difference->rank_b, odd_one);
}

std::string_view call_name(std::uint32_t code) { return code == 1 ? "create" : "commit"; }

void the_same_call_agrees(Communicator& communicator) {
  const CallId call{1, 77, unsigned_rank(communicator) + 3};
  EXPECT_EQ(agree_on_call(communicator, call, std::nullopt, call_name, soon()),
            static_cast<std::uint64_t>(communicator.size()) + 2);
}

void different_calls_are_refused_everywhere(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const int odd_one = communicator.size() / 2;
  const bool odd = communicator.rank() == odd_one;
  const auto local = odd ? std::optional(Failure{ErrorCode::io, "disk", -1, {}, 0}) : std::nullopt;
  const auto calls = failure_of([&] {
    agree_on_call(communicator, {odd ? 2U : 1U, unsigned_rank(communicator), 0}, local, call_name, soon());
  });
  EXPECT_EQ(calls.code, ErrorCode::bad_state);
  EXPECT_NE(calls.message.find("rank 0 is in create, rank " + std::to_string(odd_one) + " in commit"),
            std::string::npos)
      << calls.message;
  const auto arguments = failure_of([&] {
    agree_on_call(communicator, {1, odd ? 8U : 9U, 0}, std::nullopt, call_name, soon());
  });
  EXPECT_EQ(arguments.code, ErrorCode::bad_state);
  EXPECT_NE(arguments.message.find("ranks 0 and " + std::to_string(odd_one) + " gave different arguments to create"),
            std::string::npos)
      << arguments.message;
  communicator.barrier(soon());  // nothing is out of step afterwards
}

void a_local_failure_ends_the_call_everywhere(Communicator& communicator) {
  const int failing = communicator.size() - 1;
  const bool mine = communicator.rank() == failing;
  const auto local = mine ? std::optional(Failure{ErrorCode::no_space, "full", -1, "/s", 28}) : std::nullopt;
  const auto failure = failure_of([&] {
    agree_on_call(communicator, {2, mine ? 1U : 2U, 0}, local, call_name, soon());
  });
  EXPECT_EQ(failure.code, ErrorCode::no_space) << failure.message;
  EXPECT_EQ(failure.rank, failing);
  EXPECT_EQ(failure.path, "/s");
}

void a_signal_wakes_another_thread(Communicator& communicator) {
  if (communicator.thread_support() != ThreadSupport::multiple) return;
  const auto there = communicator.signal();
  const auto back = communicator.signal();
  int turns = 0;
  const auto thread = communicator.start_thread([&] {
    for (int turn = 0; turn < 100; ++turn) {
      EXPECT_TRUE(there->wait(soon()));
      ++turns;
      back->raise();
    }
  });
  for (int turn = 1; turn <= 100; ++turn) {
    there->raise();
    EXPECT_TRUE(back->wait(soon()));
    EXPECT_EQ(turns, turn);
  }
  EXPECT_TRUE(thread->join(soon()));
  there->raise();  // while nobody waits: the next wait is over at once, the one after it is not
  there->raise();
  EXPECT_TRUE(there->wait(soon()));
  EXPECT_FALSE(there->wait(Deadline::after(std::chrono::milliseconds(20))));
}

void an_interrupt_ends_the_wait_of_another_thread(Communicator& communicator) {
  if (communicator.thread_support() != ThreadSupport::multiple) return;
  const int never = communicator.rank();  // sends itself nothing
  for (const bool in_collective : {false, true}) {
    const std::shared_ptr<Communicator> duplicate = communicator.duplicate(soon());
    const auto waits = communicator.signal();
    Failure failure;
    const auto thread = communicator.start_thread([&] {
      const auto bytes = std::make_shared<std::vector<std::byte>>(1);
      waits->raise();
      failure = failure_of([&] {
        if (in_collective && communicator.size() > 1 && communicator.rank() != 0) {
          return duplicate->barrier(Deadline::never());  // rank 0 does not come
        }
        auto request = duplicate->receive(never, 7, *bytes);
        duplicate->wait(std::span(&request, 1), Deadline::never());
      });
      keep_forever(bytes);
    });
    EXPECT_TRUE(waits->wait(soon()));
    duplicate->interrupt();
    EXPECT_TRUE(thread->join(soon()));
    EXPECT_EQ(failure.code, ErrorCode::timeout);
    communicator.barrier(soon());  // the original is what it was
  }
}

}  // namespace

std::span<const Case> cases() {
  static const std::vector<Case> all{
      {"MessagesArriveInOrderPerPeerAndChannel", messages_arrive_in_order_per_peer_and_channel},
      {"MessagesOfADuplicateDoNotMeetThoseOfTheOriginal", messages_of_a_duplicate_do_not_meet_those_of_the_original},
      {"TestTellsWhenAMessageIsThere", test_tells_when_a_message_is_there},
      {"AMessageOfAnotherSizeIsRefused", a_message_of_another_size_is_refused},
      {"AllReduceKnowsEveryReduction", all_reduce_knows_every_reduction},
      {"BroadcastReachesAllFromAnyRoot", broadcast_reaches_all_from_any_root},
      {"GroupsAreRankLists", groups_are_rank_lists},
      {"WrongRanksAndChannelsAreRefused", wrong_ranks_and_channels_are_refused},
      {"SparseExchangeDeliversWhatWasSent", sparse_exchange_delivers_what_was_sent},
      {"VotesGiveTheFailureOfTheLowestFailingRank", votes_give_the_failure_of_the_lowest_failing_rank},
      {"VotesCutLongTextsBetweenCharacters", votes_cut_long_texts_between_characters},
      {"DifferencesAreFoundAndNamed", differences_are_found_and_named},
      {"TheSameCallAgrees", the_same_call_agrees},
      {"DifferentCallsAreRefusedEverywhere", different_calls_are_refused_everywhere},
      {"ALocalFailureEndsTheCallEverywhere", a_local_failure_ends_the_call_everywhere},
      {"ASignalWakesAnotherThread", a_signal_wakes_another_thread},
      {"AnInterruptEndsTheWaitOfAnotherThread", an_interrupt_ends_the_wait_of_another_thread},
  };
  return all;
}

Deadline soon() { return Deadline::after(std::chrono::seconds(30)); }

}  // namespace kedge::comm::contract
