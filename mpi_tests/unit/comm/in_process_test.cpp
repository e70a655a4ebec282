// Ranks as threads in virtual time: every check of a communicator, also with paced messages; a wait for nobody times
// out and names the peer, a death at any event leaves no rank hanging, and the outcome does not depend on scheduling.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/throttled_communicator.hpp"
#include "comm/vote.hpp"
#include "harness/communicator_contract.hpp"
#include "harness/testing_world.hpp"

namespace kedge::comm::in_process_test {
namespace {

using testing::InProcessWorld;
using testing::SimulatedDeath;
using testing::StopKind;

Deadline soon() { return Deadline::after(std::chrono::hours(1)); }  // virtual: never waited for

std::optional<Failure> failure_on(int rank, const Communicator& communicator) {
  if (communicator.rank() != rank) return std::nullopt;
  return Failure{ErrorCode::io, "disk", -1, {}, 0};
}

class InProcessContract : public testing::TestWithParam<std::tuple<contract::Case, int>> {};

TEST_P(InProcessContract, BlockedCalls) {
  const auto& [which, ranks] = GetParam();
  InProcessWorld world(ranks, ThreadSupport::multiple);
  for (const auto& outcome : world.run_connected(which.check)) {
    EXPECT_TRUE(outcome.returned()) << (outcome.failure ? outcome.failure->message : "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, InProcessContract,
                         testing::Combine(testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                                          testing::Values(1, 2, 3, 5, 8)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "On" + std::to_string(std::get<1>(test.param));
                         });

class GentleContract : public testing::TestWithParam<contract::Case> {};

TEST_P(GentleContract, BlockedCalls) {
  InProcessWorld world(3, ThreadSupport::multiple);
  const auto outcomes = world.run([&](int rank) {
    auto inner = world.communicator(rank);
    inner->connect(soon());
    ThrottledCommunicator gentle(std::move(inner), [](std::uint64_t /*sent_bytes*/) {});
    GetParam().check(gentle);
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
}

INSTANTIATE_TEST_SUITE_P(All, GentleContract, testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                         [](const auto& test) { return test.param.name; });

TEST(Gentle, AsksBeforeEachMessage) {
  InProcessWorld world(2);
  std::vector<std::vector<std::uint64_t>> asked(2);
  const auto outcomes = world.run([&](int rank) {
    auto inner = world.communicator(rank);
    inner->connect(soon());
    ThrottledCommunicator gentle(std::move(inner), [&asked, rank](std::uint64_t sent_bytes) {
      asked.at(static_cast<std::size_t>(rank)).push_back(sent_bytes);
    });
    std::vector<std::byte> bytes(77);
    auto request = rank == 0 ? gentle.send(1, 0, bytes) : gentle.receive(0, 0, bytes);
    gentle.wait(std::span(&request, 1), soon());
    gentle.barrier(soon(), {});
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
  EXPECT_EQ(asked, (std::vector<std::vector<std::uint64_t>>{{77}, {0}}));
}

TEST(InProcess, AWaitForNobodyTimesOutAndNamesThePeer) {
  InProcessWorld world(3);
  const auto outcomes = world.run_connected([](Communicator& communicator) {
    if (communicator.rank() != 1) return;
    std::vector<std::byte> bytes(1);
    auto request = communicator.receive(2, 0, bytes);
    communicator.wait(std::span(&request, 1), soon());
  });
  EXPECT_TRUE(outcomes[0].returned() && outcomes[2].returned());
  ASSERT_TRUE(outcomes[1].failure.has_value());
  EXPECT_EQ(outcomes[1].failure->code, ErrorCode::timeout);
  EXPECT_NE(outcomes[1].failure->message.find("rank 2"), std::string::npos) << outcomes[1].failure->message;
}

TEST(InProcess, TheLowestRankWithADeadlineTimesOutFirst) {
  InProcessWorld world(3);
  std::vector<int> timeout_error;  // ranks time out one after the other, never at once
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    std::vector<std::byte> bytes(1);
    auto request = communicator.receive((communicator.rank() + 1) % 3, 0, bytes);
    try {
      communicator.wait(std::span(&request, 1), communicator.rank() == 0 ? Deadline::never() : soon());
    } catch (const Error&) {
      timeout_error.push_back(communicator.rank());
      throw;
    }
  });
  EXPECT_EQ(timeout_error, (std::vector<int>{1, 2, 0}));
  EXPECT_EQ(outcomes[1].failure.value().code, ErrorCode::timeout);
  EXPECT_EQ(outcomes[2].failure.value().code, ErrorCode::timeout);
  EXPECT_EQ(outcomes[0].failure.value().code, ErrorCode::bad_state);  // nobody is left, and no deadline
}

TEST(InProcess, ADeadlockOfUnboundedWaitsIsReportedOnAllRanks) {
  InProcessWorld world(3);
  const auto outcomes = world.run_connected([](Communicator& communicator) {
    std::vector<std::byte> bytes(1);
    auto request = communicator.receive((communicator.rank() + 1) % 3, 0, bytes);
    communicator.wait(std::span(&request, 1), Deadline::never());
  });
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(outcome.failure->code, ErrorCode::bad_state);
    EXPECT_EQ(outcome.failure->message.rfind("deadlock", 0), 0U);
  }
}

TEST(InProcess, ACommunicatorThatTimedOutOrIsNotConnectedRefuses) {
  InProcessWorld world(1);
  const auto outcomes = world.run([&](int rank) {
    const auto communicator = world.communicator(rank);
    EXPECT_THROW(communicator->barrier(soon()), Error);
    communicator->connect(soon());
    EXPECT_THROW(communicator->connect(soon()), Error);
    std::vector<std::byte> bytes(1);
    auto request = communicator->receive(0, 0, bytes);
    EXPECT_THROW(communicator->wait(std::span(&request, 1), soon()), Error);
    EXPECT_THROW(static_cast<void>(communicator->send(0, 0, bytes)), Error);
  });
  EXPECT_TRUE(outcomes[0].returned());
}

TEST(InProcess, CountsMessagesAndEvents) {
  InProcessWorld world(2);
  static_cast<void>(world.run([&](int rank) {
    const auto communicator = world.communicator(rank);
    communicator->connect(soon());  // one message up, one down
    communicator->barrier(soon());
  }));
  EXPECT_EQ(world.messages(), 4U);
  EXPECT_EQ(world.events(0), 4U);
  EXPECT_EQ(world.events(1), 4U);
}

/// Runs one vote with a fault at each event of each rank, and again until there are no more events.
void vote_with_a_fault_at_each_event(int ranks, StopKind kind, const std::optional<int>& failing) {
  for (int victim = 0; victim < ranks; ++victim) {
    for (std::uint64_t event = 0;; ++event) {
      InProcessWorld world(ranks);
      world.stop_at(victim, event, kind);
      const auto outcomes = world.run_connected([&](Communicator& communicator) {
        const auto local = failing ? failure_on(*failing, communicator) : std::nullopt;
        const auto outcome = vote(communicator, local, soon());
        EXPECT_EQ(outcome.has_value(), failing.has_value());
      });
      if (!outcomes[static_cast<std::size_t>(victim)].died) {
        EXPECT_EQ(event, world.events(victim));
        break;
      }
      EXPECT_EQ(event, world.events(victim));
      for (int rank = 0; rank < ranks; ++rank) {
        const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
        if (rank == victim || outcome.returned()) continue;
        ASSERT_TRUE(outcome.failure.has_value());
        EXPECT_EQ(outcome.failure->code, ErrorCode::timeout);
      }
      if (event == 0) {  // dead from the start: nobody can have got through
        for (const auto& outcome : outcomes) EXPECT_FALSE(outcome.returned());
      }
    }
  }
}

TEST(InProcess, ADeathAtAnyEventOfAVoteLeavesTheOthersWithATimeoutAndNeverAHang) {
  for (const int ranks : {2, 3, 5, 8}) vote_with_a_fault_at_each_event(ranks, StopKind::die, std::nullopt);
  for (const int failing : {0, 2, 4}) vote_with_a_fault_at_each_event(5, StopKind::die, failing);
}

TEST(InProcess, ARankThatHangsLeavesTheOthersWithATimeoutAndIsReleasedInTheEnd) {
  for (const int ranks : {2, 3, 5, 8}) vote_with_a_fault_at_each_event(ranks, StopKind::stop, std::nullopt);
}

/// What comes between the end of a wait and the moment when its thread notices must not count as the end of another:
/// all waits that follow would never time out.
TEST(InProcess, AMessageToAWaitThatWasJustInterruptedIsNoSecondEnd) {
  for (int turn = 0; turn < 50; ++turn) {
    InProcessWorld world(2, ThreadSupport::multiple);
    std::atomic<bool> is_interrupted = false;
    const auto outcomes = world.run_connected([&](Communicator& communicator) {
      const std::shared_ptr<Communicator> duplicate = communicator.duplicate(soon());
      if (communicator.rank() == 1) {
        while (!is_interrupted) std::this_thread::yield();
        static_cast<void>(duplicate->send(0, 7, std::vector<std::byte>(1)));
        return;
      }
      const auto waits = communicator.signal();
      std::vector<std::byte> received(1);
      const auto thread = communicator.start_thread([&] {
        auto request = duplicate->receive(1, 7, received);
        waits->raise();
        try {
          duplicate->wait(std::span(&request, 1), Deadline::never());
        } catch (const Error&) {
        }
      });
      EXPECT_TRUE(waits->wait(soon()));
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // until it waits
      duplicate->interrupt();
      is_interrupted = true;
      EXPECT_TRUE(thread->join(soon()));
      EXPECT_FALSE(waits->wait(soon())) << "times out, in virtual time";
    });
    for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
  }
}

TEST(InProcess, WhatADeadRankSentStaysDelivered) {
  InProcessWorld world(2);
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    std::vector<std::byte> bytes(1, std::byte{7});
    if (communicator.rank() == 1) {
      static_cast<void>(communicator.send(0, 0, bytes));
      world.mark_dead(1);
      EXPECT_THROW(static_cast<void>(communicator.send(0, 0, bytes)), SimulatedDeath);
      EXPECT_THROW(communicator.wait({}, soon()), SimulatedDeath);  // and for ever
      throw SimulatedDeath{};
    }
    bytes[0] = std::byte{0};
    auto request = communicator.receive(1, 0, bytes);
    communicator.wait(std::span(&request, 1), soon());
    EXPECT_EQ(bytes[0], std::byte{7});
    request = communicator.receive(1, 0, bytes);
    EXPECT_THROW(communicator.wait(std::span(&request, 1), soon()), Error);
  });
  EXPECT_TRUE(outcomes[0].returned());
  EXPECT_TRUE(outcomes[1].died);
}

TEST(InProcess, AWaitingRankCanBeDeclaredDeadByAnother) {
  InProcessWorld world(2);
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    if (communicator.rank() == 1) return world.mark_dead(0);
    std::vector<std::byte> bytes(1);
    auto request = communicator.receive(1, 0, bytes);
    communicator.wait(std::span(&request, 1), Deadline::never());
  });
  EXPECT_TRUE(outcomes[0].died);
  EXPECT_TRUE(outcomes[1].returned());
}

TEST(InProcess, TheOutcomeDoesNotDependOnScheduling) {
  std::set<std::string> seen;
  for (int repetition = 0; repetition < 300; ++repetition) {
    InProcessWorld world(4);
    world.stop_at(2, 5, StopKind::die);
    const auto outcomes = world.run_connected([](Communicator& communicator) {
      for (int i = 0; i < 3; ++i) static_cast<void>(vote(communicator, std::nullopt, soon()));
    });
    std::string text;
    for (int rank = 0; rank < 4; ++rank) {
      const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
      text += std::to_string(world.events(rank)) + (outcome.died ? " died, " : " ");
      if (outcome.failure) text += outcome.failure->message + ", ";
    }
    seen.insert(text + std::to_string(world.messages()));
  }
  EXPECT_EQ(seen.size(), 1U) << *seen.begin() << "\n" << *seen.rbegin();
}

TEST(InProcess, CollectsWhatRanksThrow) {
  InProcessWorld world(3);
  const auto outcomes = world.run([](int rank) {
    if (rank == 1) throw std::runtime_error("other");
    if (rank == 2) throw Error(ErrorCode::busy, "held");
  });
  EXPECT_TRUE(outcomes[0].returned());
  EXPECT_TRUE(outcomes[1].exception != nullptr && !outcomes[1].failure);
  EXPECT_EQ(outcomes[2].failure.value().code, ErrorCode::busy);
  EXPECT_THROW(world.run([](int) {}), Error);
  EXPECT_THROW(InProcessWorld(0), Error);
  EXPECT_THROW(world.stop_at(3, 0, StopKind::die), Error);
}

TEST(Vote, ThrowIfThrowsOnlyAFailure) {
  EXPECT_NO_THROW(throw_if(std::nullopt));
  EXPECT_THROW(throw_if(Failure{ErrorCode::io, "x", 0, {}, 0}), Error);
}

TEST(Vote, CostsOneAllReduceWhenNobodyFailed) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    InProcessWorld world(ranks);
    static_cast<void>(world.run([&](int rank) {
      const auto communicator = world.communicator(rank);
      communicator->connect(soon());
      static_cast<void>(vote(*communicator, std::nullopt, soon()));
      static_cast<void>(agree_on_call(
          *communicator, {}, std::nullopt, [](std::uint32_t) { return std::string_view(); }, soon()));
    }));
    EXPECT_EQ(world.messages(), static_cast<std::uint64_t>(3 * 2 * (ranks - 1)));
  }
}

}  // namespace
}  // namespace kedge::comm::in_process_test
