// Time in which a process was suspended does not count against its deadlines, several waits find one stop once, and a
// wait ends all the same.
#include "base/awake_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "kedge/communicator.hpp"

namespace kedge::awake_time_test {
namespace {

using Seconds = AwakeTime::Seconds;

/// A wait that looks every 0.1 s, and what happens to it.
class LookedAt {
 public:
  explicit LookedAt(double begun_s) : now_s(begun_s), awake(Seconds(begun_s)) {}
  void look_after(double wait_s) {
    awake.record_check(Seconds(now_s), Seconds(now_s + wait_s));
    now_s += wait_s;
  }
  void wait_s(double seconds) {
    for (int looks = static_cast<int>(seconds * 10 + 0.5); looks > 0; --looks) look_after(0.1);
  }
  double now_s;
  AwakeTime awake;
};

TEST(AwakeTime, WhatIsWaitedCounts) {
  LookedAt wait(1000);
  wait.wait_s(500);
  wait.look_after(0.25);
  EXPECT_EQ(wait.awake.uncounted_time().count(), 0);
  EXPECT_EQ(wait.awake.stopped_time().count(), 0);
}

TEST(AwakeTime, AStopDoesNotAndOthersMayBeContinuedLater) {
  LookedAt wait(1000);
  wait.wait_s(4);
  wait.look_after(12);
  EXPECT_NEAR(wait.awake.stopped_time().count(), 12, 1e-6);
  EXPECT_NEAR(wait.awake.uncounted_time().count(), 12 - 0.25 + 2, 1e-6) << "half of what was awake besides";
  wait.wait_s(300);
  EXPECT_NEAR(wait.awake.uncounted_time().count(), 12 - 0.25 + 2, 1e-6);
  wait.look_after(3600);
  EXPECT_NEAR(wait.awake.uncounted_time().count(), 12 - 0.25 + 2 + 3600 - 0.25 + 30, 1e-6);
  wait.wait_s(300);
  wait.look_after(0.35);
  EXPECT_NEAR(wait.awake.stopped_time().count(), 12 + 3600 + 0.35, 1e-6);
  EXPECT_LT(wait.awake.uncounted_time().count(), 12 + 2 + 3600 + 30 + 0.4) << "a short one makes it little later";
}

TEST(AwakeTime, OneStopThatSeveralFindCountsOnce) {
  LookedAt wait(1000);
  wait.wait_s(100);
  const double before_s = wait.now_s;
  wait.look_after(50);
  const Seconds uncounted = wait.awake.uncounted_time();
  wait.awake.record_check(Seconds(before_s - 0.05), Seconds(wait.now_s + 0.01));
  wait.awake.record_check(Seconds(before_s - 0.08), Seconds(wait.now_s + 0.2));
  wait.awake.record_check(Seconds(before_s), Seconds(wait.now_s));
  EXPECT_EQ(wait.awake.uncounted_time(), uncounted);
}

TEST(AwakeTime, AWaitEndsThatIsStoppedAgainAndAgain) {
  LookedAt turns(1000);  // gang scheduling
  for (int i = 0; i < 100; ++i) {
    turns.wait_s(5);
    turns.look_after(60);
  }
  EXPECT_GE(turns.now_s - 1000 - turns.awake.uncounted_time().count(), 100 * 5 / 2.0);
  LookedAt slow(1000);  // each look takes long
  for (int i = 0; i < 100; ++i) slow.look_after(10);
  EXPECT_GE(slow.now_s - 1000 - slow.awake.uncounted_time().count(), 100 * 0.25 - 1e-6);
}

class JumpingClock final : public Clock {
 public:
  std::int64_t wall_ns() override { return 0; }
  double seconds() override { return now_s; }
  void sleep_for(std::chrono::duration<double> wait) override { now_s += wait.count(); }
  double now_s = 77;
};

TEST(AwakeTime, OfAWaitByAClock) {
  JumpingClock clock;
  WaitTime waited(clock);
  for (int i = 0; i < 20; ++i) {
    clock.sleep_for(std::chrono::milliseconds(50));
    EXPECT_NEAR(waited.elapsed_s(), 0.05 * (i + 1), 1e-6);
  }
  clock.now_s += 1000;
  EXPECT_LT(waited.elapsed_s(), 1.5);
  EXPECT_GE(waited.elapsed_s(), 0.5);
}

TEST(AwakeTime, ADeadlineThatNobodyLooksAtIsNotPutOff) {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(300));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // work of one's own
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.stopped_s(), 0);
}

TEST(AwakeTime, AWaitThatEndsWithAStopPutsOffTheNextOne) {
  const Deadline deadline = Deadline::after(Seconds(0.6));
  {
    WaitTimer patience(deadline);
    EXPECT_FALSE(patience.is_over());
    std::this_thread::sleep_for(Seconds(0.9));  // as if stopped; what it waited for is there afterwards
  }
  EXPECT_FALSE(deadline.passed());
}

TEST(AwakeTime, APatienceWithoutADeadlineNeverEnds) {
  WaitTimer patience(Deadline::never());
  EXPECT_FALSE(patience.is_over());
  EXPECT_NEAR(patience.slice().count(), 0.1, 1e-9);
  EXPECT_TRUE(WaitTimer(Deadline::after(std::chrono::seconds(0))).is_over());
}

}  // namespace
}  // namespace kedge::awake_time_test
