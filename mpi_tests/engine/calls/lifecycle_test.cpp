// Phases and ends of an engine, without one: which errors end it, and that nothing follows its end.
#include "engine/lifecycle.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/attempt.hpp"
#include "base/invariant.hpp"

namespace kedge::engine::lifecycle_test {
namespace {

/// What the first of two calls throws that meets `thrown`, and what the second does.
template <class Thrown>
struct AfterOneThatThrows {
  explicit AfterOneThatThrows(const Thrown& thrown) {
    first = attempt([&] { lifecycle.collective([&] { throw Thrown(thrown); }); });
    second = attempt([&] { lifecycle.collective([&] { entered = true; }); });
  }
  Lifecycle lifecycle;
  std::optional<Failure> first, second;
  bool entered = false;
};

TEST(Lifecycle, ACallReturnsWhatItsBodyDoes) {
  Lifecycle lifecycle;
  EXPECT_EQ(lifecycle.collective([] { return 7; }), 7);
}

TEST(Lifecycle, AnErrorThatAllRanksThrowEndsNothing) {
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::bad_state, ErrorCode::corrupt, ErrorCode::no_space}) {
    const AfterOneThatThrows calls(Error(code, "why"));
    EXPECT_EQ(calls.first->code, code);
    EXPECT_TRUE(calls.entered);
    EXPECT_FALSE(calls.second);
  }
}

TEST(Lifecycle, AfterATimeoutAFailedRankOrALaterStartNoCallIsTaken) {
  for (const ErrorCode code : {ErrorCode::timeout, ErrorCode::rank_failed, ErrorCode::busy}) {
    const AfterOneThatThrows calls(Error(code, "why it ended"));
    EXPECT_EQ(calls.first->code, code);
    EXPECT_FALSE(calls.entered);
    ASSERT_TRUE(calls.second);
    EXPECT_EQ(calls.second->code, ErrorCode::bad_state);
    EXPECT_NE(calls.second->message.find("why it ended"), std::string::npos) << calls.second->message;
  }
}

TEST(Lifecycle, WhatThisRankAloneMetEndsItsEngine) {
  const AfterOneThatThrows calls(std::runtime_error("a page was lost"));
  ASSERT_TRUE(calls.first);
  EXPECT_EQ(calls.first->code, ErrorCode::io);
  EXPECT_EQ(calls.first->message, "unexpected: a page was lost");
  EXPECT_TRUE(calls.lifecycle.is_dead());
  EXPECT_FALSE(calls.entered);
  ASSERT_TRUE(calls.second);
  EXPECT_EQ(calls.second->code, ErrorCode::bad_state);
  EXPECT_NE(calls.second->message.find("a page was lost"), std::string::npos) << calls.second->message;
}

TEST(Lifecycle, WritingAndReadingBeginAndEndInIdleAndNothingFollowsFinished) {
  Lifecycle lifecycle;
  for (const Phase between : {Phase::writing, Phase::reading}) {
    lifecycle.move_to(between);
    for (const Phase astray : {Phase::writing, Phase::reading}) {
      EXPECT_THROW(lifecycle.move_to(astray), BrokenInvariant);
    }
    lifecycle.move_to(Phase::idle);
  }
  lifecycle.move_to(Phase::finished);
  for (const Phase after : {Phase::idle, Phase::writing, Phase::reading}) {
    EXPECT_THROW(lifecycle.move_to(after), BrokenInvariant);
  }
  EXPECT_TRUE(attempt([&] { lifecycle.collective([] {}); }));
}

}  // namespace
}  // namespace kedge::engine::lifecycle_test
