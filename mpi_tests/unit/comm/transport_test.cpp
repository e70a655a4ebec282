// A communicator over any message layer, and that of a single process: every check of a communicator, messages of other
// sizes than asked for, lost ranks.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "harness/communicator_contract.hpp"
#include "harness/thread_transport.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::transport_test {
namespace {

using testing::ThreadMessages;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

/// Every rank on a thread, with a connected communicator; what each threw.
std::vector<std::optional<Failure>> run(ThreadMessages& messages, const std::function<void(Communicator&)>& body) {
  std::vector<std::optional<Failure>> failures(static_cast<std::size_t>(messages.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < messages.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto communicator = make_communicator(messages.transport(rank));
        communicator->connect(soon());
        body(*communicator);
      } catch (const Error& error) {
        failures[static_cast<std::size_t>(rank)] = error.failure();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

class TransportContract : public ::testing::TestWithParam<std::tuple<contract::Case, int>> {};

TEST_P(TransportContract, BlockedCalls) {
  const auto& [which, ranks] = GetParam();
  ThreadMessages messages(ranks);
  for (const auto& failure : run(messages, which.check)) EXPECT_FALSE(failure) << failure->message;
}

INSTANTIATE_TEST_SUITE_P(All, TransportContract,
                         ::testing::Combine(::testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                                            ::testing::Values(1, 2, 3, 5, 8)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "On" + std::to_string(std::get<1>(test.param));
                         });

class SingleProcess : public ::testing::TestWithParam<contract::Case> {};

TEST_P(SingleProcess, BlockedCalls) {
  const auto communicator = single_process();
  communicator->connect(soon());
  GetParam().check(*communicator);
}

INSTANTIATE_TEST_SUITE_P(All, SingleProcess, ::testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                         [](const auto& test) { return test.param.name; });

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

// Around the size up to which a message goes along with its size.
TEST(TransportTransfer, MessagesOfEverySizeArrive) {
  ThreadMessages messages(2);
  const auto failures = run(messages, [](Communicator& communicator) {
    for (const std::size_t size : {0UL, 1UL, 65535UL, 65536UL, 65537UL, 1000000UL}) {
      const auto sent = pattern(size);
      std::vector<std::byte> received(size);
      std::vector<Communicator::Request> requests;
      requests.push_back(communicator.receive(1 - communicator.rank(), 5, received));
      requests.push_back(communicator.send(1 - communicator.rank(), 5, sent));
      communicator.wait(requests, soon());
      EXPECT_EQ(received, sent) << size;
      const auto exchanged = communicator.sparse_exchange({{1 - communicator.rank(), sent}, {0, sent}}, soon());
      ASSERT_EQ(exchanged.size(), communicator.rank() == 0 ? 3U : 1U);
      for (const auto& message : exchanged) EXPECT_EQ(message.bytes, sent) << size;
    }
  });
  for (const auto& failure : failures) EXPECT_FALSE(failure) << failure->message;
}

TEST(TransportTransfer, AMessageOfAnotherSizeIsNeverTakenForTheRightOne) {
  for (const auto& [sent, expected, code] :
       std::vector<std::tuple<std::size_t, std::size_t, ErrorCode>>{{4, 5, ErrorCode::bad_state},
                                                                    {70000, 5, ErrorCode::bad_state},
                                                                    {70000, 80000, ErrorCode::bad_state},
                                                                    {5, 4, ErrorCode::rank_failed},
                                                                    {5, 70000, ErrorCode::rank_failed}}) {
    const auto bytes = pattern(sent);
    std::vector<std::byte> received(expected);  // what came late is written there until both ranks have ended
    ThreadMessages messages(2);
    const auto failures = run(messages, [&](Communicator& communicator) {
      auto request = communicator.rank() == 0 ? communicator.send(1, 5, bytes) : communicator.receive(0, 5, received);
      communicator.wait(std::span(&request, 1), Deadline::after(std::chrono::milliseconds(200)));
    });
    ASSERT_TRUE(failures[1].has_value()) << sent << " " << expected;
    EXPECT_EQ(failures[1]->code, code) << sent << " " << expected << " " << failures[1]->message;
  }
}

TEST(TransportTransfer, ALostRankFailsWhatWaitsForItAndEndsTheCommunicator) {
  ThreadMessages messages(3);
  const auto failures = run(messages, [&](Communicator& communicator) {
    if (communicator.rank() == 2) return messages.lose(2);
    if (communicator.rank() == 1) return;
    std::vector<std::byte> bytes(1);
    auto request = communicator.receive(2, 0, bytes);
    try {
      communicator.wait(std::span(&request, 1), soon());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::rank_failed);
    }
    communicator.barrier(soon());
  });
  ASSERT_TRUE(failures[0].has_value());
  EXPECT_EQ(failures[0]->code, ErrorCode::bad_state) << failures[0]->message;
}

TEST(TransportTransfer, AWaitForNobodyTimesOutNamesThePeerAndEndsTheCommunicator) {
  ThreadMessages messages(2);
  const auto failures = run(messages, [&](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    std::vector<std::byte> bytes(1);
    auto request = communicator.receive(1, 0, bytes);
    try {
      communicator.wait(std::span(&request, 1), Deadline::after(std::chrono::milliseconds(50)));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      EXPECT_NE(error.failure().message.find("rank 1"), std::string::npos) << error.failure().message;
    }
    communicator.barrier(soon());
  });
  ASSERT_TRUE(failures[0].has_value());
  EXPECT_EQ(failures[0]->code, ErrorCode::bad_state) << failures[0]->message;
}

}  // namespace
}  // namespace kedge::comm::transport_test
