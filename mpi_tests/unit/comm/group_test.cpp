// Every way in which a group decides, with one rank that fails in it.
#include "comm/group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/invariant.hpp"
#include "harness/testing_world.hpp"

namespace kedge::comm::group_test {
namespace {

using ::testing::ElementsAre;

constexpr int kRanks = 4;
constexpr Group::Seconds kTimeout{3600};  // virtual: never waited for

/// Runs the body on every rank; all must return.
template <class Body>
void on_all_ranks(Body&& body) {
  testing::InProcessWorld world(kRanks);
  for (const auto& outcome :
       world.run_connected([&](Communicator& communicator) { body(Group(communicator, kTimeout)); })) {
    EXPECT_TRUE(outcome.returned()) << (outcome.failure ? outcome.failure->message : "");
  }
}

[[noreturn]] void fail(const char* why) { throw Error(ErrorCode::io, why); }

TEST(Group, AStepThatFailsOnOneRankFailsOnAllAlike) {
  on_all_ranks([](const Group& group) {
    for (int failing = 0; failing < kRanks; ++failing) {
      const auto failure = group.try_on_all_ranks([&] {
        if (group.rank() >= failing) fail("disk");
      });
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->rank, failing);
      EXPECT_EQ(failure->message, "disk");
      EXPECT_THROW(group.run_on_all_ranks([&] {
        if (group.rank() == failing) fail("disk");
      }),
                   Error);
    }
    EXPECT_FALSE(group.try_on_all_ranks([] {}));
  });
}

TEST(Group, OneThatAsksIsHeardOnAllRanksBesideAFailure) {
  on_all_ranks([](const Group& group) {
    for (int asking = 0; asking < kRanks; ++asking) {
      for (const bool fails : {false, true}) {
        std::optional<Failure> local;
        if (fails && group.rank() == 2) local = Failure{ErrorCode::io, "disk", -1, {}, 0};
        const VoteResult ballot = group.vote_with_request(local, group.rank() == asking);
        EXPECT_TRUE(ballot.is_requested);
        EXPECT_EQ(ballot.failure ? ballot.failure->rank : -1, fails ? 2 : -1);
      }
    }
    const VoteResult none = group.vote_with_request({}, false);
    EXPECT_FALSE(none.is_requested);
    EXPECT_FALSE(none.failure);
  });
}

TEST(Group, WhatIsNoErrorOfKedgeIsAFailureToo) {
  on_all_ranks([](const Group& group) {
    const auto failure = group.try_on_all_ranks([&] {
      if (group.rank() == 2) throw std::runtime_error("surprise");
    });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_EQ(failure->rank, 2);
  });
}

TEST(Group, TheRootDecidesForAllOrFailsForAll) {
  on_all_ranks([](const Group& group) {
    int calls = 0;
    EXPECT_EQ(group.decide_on_root([&] { return ++calls + 41; }), 42);
    EXPECT_EQ(calls, group.is_root() ? 1 : 0);
    EXPECT_EQ(group.decide_on_root([] { return std::string("a text"); }), "a text");
    EXPECT_THAT(group.decide_on_root([] { return std::vector<int>{3, 1, 4}; }), ElementsAre(3, 1, 4));
    EXPECT_TRUE(group.decide_on_root([] { return std::vector<int>{}; }).empty());
    int value = 7;
    const auto failure = group.try_decide_on_root(value, []() -> int { fail("prefix"); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, 0);
    EXPECT_EQ(value, 7);
    EXPECT_THROW((void)group.decide_on_root([]() -> int { fail("prefix"); }), Error);
  });
}

/// Who found a failure need not be who has it: a home tells of the ranks that it is asked about.
TEST(Group, AFailureThatNamesARankKeepsIt) {
  on_all_ranks([](const Group& group) {
    const auto failure = group.try_on_all_ranks([&] {
      if (group.rank() == 1) throw Error(Failure{ErrorCode::mismatch, "other sizes", 3, {}, 0});
    });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, 3);
  });
}

TEST(Group, AnyAllSumAndMax) {
  on_all_ranks([](const Group& group) {
    const auto rank = static_cast<std::uint64_t>(group.rank());
    EXPECT_TRUE(group.any(group.rank() == 3));
    EXPECT_FALSE(group.any(false));
    EXPECT_FALSE(group.all(group.rank() != 1));
    EXPECT_TRUE(group.all(true));
    EXPECT_EQ(group.sum(rank), 6U);
    EXPECT_EQ(group.max(rank * 10), 30U);
    EXPECT_THAT(group.sum(std::array<std::uint64_t, 2>{1, rank}), ElementsAre(4, 6));
  });
}

TEST(Group, TheLowestRankWithSomethingIsFoundAndHeard) {
  on_all_ranks([](const Group& group) {
    EXPECT_EQ(group.lowest_rank_with(group.rank() >= 2), 2);
    EXPECT_FALSE(group.lowest_rank_with(false));
    const auto mine = group.rank() >= 1 ? std::optional("rank " + std::to_string(group.rank())) : std::nullopt;
    EXPECT_EQ(group.text_of_lowest_rank(mine), "rank 1");
    EXPECT_EQ(group.text_of_lowest_rank(std::nullopt), "");
    std::vector<int> values(group.rank() == 3 ? 5U : 2U, group.rank());
    group.broadcast(values, 3);
    EXPECT_THAT(values, ElementsAre(3, 3, 3, 3, 3));
  });
}

TEST(Group, ADuplicateDecidesForItself) {
  on_all_ranks([](const Group& group) {
    const Group second = group.duplicate();
    EXPECT_EQ(second.sum(1), static_cast<std::uint64_t>(kRanks));
    EXPECT_EQ(group.sum(2), static_cast<std::uint64_t>(2 * kRanks));
    EXPECT_EQ(second.rank(), group.rank());
    EXPECT_EQ(second.timeout(), group.timeout());
  });
}

TEST(Group, MessagesOfADuplicateAreNotThoseOfTheGroup) {
  on_all_ranks([](const Group& group) {
    const Group second = group.duplicate();
    std::array<std::byte, 1> first_bytes{};
    std::array<std::byte, 1> second_bytes{};
    if (group.is_root()) first_bytes[0] = std::byte{1};
    if (group.is_root()) second_bytes[0] = std::byte{2};
    const auto wait = [](const Group& by, Communicator::Request request) {
      by.communicator().wait(std::span(&request, 1), by.deadline());
    };
    if (group.is_root()) {
      wait(group, group.communicator().send(1, 0, first_bytes));
      wait(second, second.communicator().send(1, 0, second_bytes));
    } else if (group.rank() == 1) {  // in the other order
      wait(second, second.communicator().receive(0, 0, second_bytes));
      wait(group, group.communicator().receive(0, 0, first_bytes));
    }
    if (group.rank() > 1) return;
    EXPECT_EQ(first_bytes[0], std::byte{1});
    EXPECT_EQ(second_bytes[0], std::byte{2});
  });
}

TEST(Group, AMessageThatDoesNotHoldWholeRecordsIsABug) {
  on_all_ranks([](const Group& group) {
    if (group.is_root()) {
      EXPECT_TRUE(group.exchange(std::vector<Communicator::Message>{{1, std::vector<std::byte>(3)}}).empty());
      return;
    }
    const std::vector<Addressed<std::uint64_t>> nothing;
    if (group.rank() == 1) EXPECT_THROW((void)group.exchange(nothing), BrokenInvariant);
    else EXPECT_TRUE(group.exchange(nothing).empty());
  });
}

TEST(Group, AnotherTimeoutIsOfTheSameRanksAlone) {
  on_all_ranks([](const Group& group) {
    const Group patient = group.with_timeout(2 * kTimeout);
    EXPECT_EQ(patient.timeout(), 2 * kTimeout);
    EXPECT_EQ(group.timeout(), kTimeout);
    EXPECT_EQ(patient.sum(1), static_cast<std::uint64_t>(kRanks));
  });
}

// As after a worker's timeout: the call that tells it waits for the same rank, and would name nobody.
TEST(Group, WhoKnowsWhyCommunicationEndedSaysThatAndNotThatItTimedOutAgain) {
  for (const ErrorCode code : {ErrorCode::timeout, ErrorCode::rank_failed}) {
    testing::InProcessWorld world(kRanks);
    const auto outcomes = world.run_connected([&](Communicator& communicator) {
      const Group group(communicator, kTimeout);
      if (group.rank() == 1) return;
      const Failure known{code, "rank 1 hangs", -1, {}, 0};
      (void)group.agree_on_call({}, known, [](std::uint32_t) { return std::string_view(); });
    });
    for (const int rank : {0, 2, 3}) {
      const auto& failure = outcomes[static_cast<std::size_t>(rank)].failure;
      ASSERT_TRUE(failure) << rank;
      EXPECT_EQ(failure->code, code);
      EXPECT_EQ(failure->message, "rank 1 hangs");
      EXPECT_EQ(failure->rank, rank);
    }
  }
}

TEST(Group, ARankThatIsGoneIsATimeoutForTheOthers) {
  testing::InProcessWorld world(kRanks);
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    const Group group(communicator, kTimeout);
    if (group.rank() == 1) return;
    (void)group.any(true);
  });
  int timeout_error = 0;
  for (const auto& outcome : outcomes) {
    if (outcome.failure && outcome.failure->code == ErrorCode::timeout) ++timeout_error;
  }
  EXPECT_GT(timeout_error, 0);
}

}  // namespace
}  // namespace kedge::comm::group_test
