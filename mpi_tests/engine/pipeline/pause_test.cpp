// Until when the work in the background stands still after pause, and within calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "harness/seconds_of.hpp"
#include "kedge/communicator.hpp"
#include "kedge/transport.hpp"
#include "pipeline/background_pause.hpp"

namespace kedge::faults::pause_test {
namespace {

using pipeline::BackgroundPause;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;
using namespace std::chrono_literals;

std::unique_ptr<Communicator::Signal> signal() { return single_process()->signal(); }

TEST(PauseOfWork, LastsAsLongAsItIsAskedFor) {
  BackgroundPause pause(60s);
  pause.set_signal(signal());
  pause.restart_limit();
  EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 1);
  pause.set_requested(true);
  std::jthread application([&] {
    std::this_thread::sleep_for(50ms);
    pause.set_requested(false);
  });
  EXPECT_THAT(seconds_of([&] { pause.wait_while_paused(); }), AllOf(Ge(0.04), Lt(30)));
  application.join();
  {
    auto hold = std::make_unique<BackgroundPause::Guard>(pause);
    application = std::jthread([&] {
      std::this_thread::sleep_for(50ms);
      hold.reset();
    });
    EXPECT_THAT(seconds_of([&] { pause.wait_while_paused(); }), AllOf(Ge(0.04), Lt(30)));
  }
  EXPECT_THAT(pause.paused_time().count(), AllOf(Ge(0.08), Lt(60)));
}

TEST(PauseOfWork, EndsWhereTheApplicationWaitsForTheWork) {
  BackgroundPause pause(60s);
  pause.set_signal(signal());
  pause.restart_limit();
  pause.set_requested(true);
  std::jthread application([&] {
    std::this_thread::sleep_for(20ms);
    const BackgroundPause::NoPauseGuard awaited(pause);
    std::this_thread::sleep_for(50ms);
  });
  EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 30);
  application.join();
  const BackgroundPause::NoPauseGuard awaited(pause);
  EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 1);
}

TEST(PauseOfWork, HasALimitForEachCommit) {
  BackgroundPause pause(50ms);
  pause.set_signal(signal());
  pause.set_requested(true);
  for (int commit = 0; commit < 2; ++commit) {
    pause.restart_limit();
    const double first = seconds_of([&] { pause.wait_while_paused(); });
    EXPECT_GE(first, 0.04);
    EXPECT_LT(first, 5);
    EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 0.04) << "the limit is for all pieces together";
  }
}

/// Ranks begin it together; were it counted from the first piece of each, what workers wait for each other would add
/// up.
TEST(PauseOfWork, AHoldHasItsLimitFromItsBeginning) {
  BackgroundPause pause(2s);
  pause.set_signal(signal());
  for (int turn = 0; turn < 2; ++turn) {
    const BackgroundPause::Guard guard(pause);
    std::this_thread::sleep_for(turn == 0 ? 1500ms : 2100ms);
    pause.restart_limit();
    EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 1.5);
    EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 0.04) << "it does not begin again";
  }
}

TEST(PauseOfWork, IsToldOnceWhereItEndsByItsLimit) {
  std::vector<BackgroundPause::Seconds> told;
  BackgroundPause pause(20ms, [&](BackgroundPause::Seconds limit) { told.push_back(limit); });
  pause.set_signal(signal());
  const auto two_commits = [&] {
    for (int commit = 0; commit < 2; ++commit) {
      pause.restart_limit();
      pause.wait_while_paused();
      pause.wait_while_paused();
    }
  };
  {
    const BackgroundPause::Guard guard(pause);
    two_commits();
  }
  EXPECT_TRUE(told.empty()) << "nobody asked for it";
  pause.set_requested(true);
  two_commits();
  EXPECT_EQ(told, std::vector<BackgroundPause::Seconds>{20ms});
  pause.set_requested(false);
  two_commits();
  EXPECT_EQ(told.size(), 1U);
  pause.set_requested(true);
  two_commits();
  EXPECT_EQ(told.size(), 2U) << "this is another pause";
}

/// All waits for it take too long; something happens during the first.
class SignalThatNeverComes : public Communicator::Signal {
 public:
  SignalThatNeverComes(int& waits, std::function<void()> meanwhile) : waits_(waits), meanwhile_(std::move(meanwhile)) {}
  void raise() noexcept override {}
  bool wait(Deadline /*deadline*/) override {
    if (++waits_ == 1) meanwhile_();
    return false;
  }

 private:
  int& waits_;
  std::function<void()> meanwhile_;
};

TEST(PauseOfWork, OneThatWasAskedForAtTheEndOfAHoldHasItsOwnLimit) {
  int waits = 0;
  int waits_when_told = 0;
  BackgroundPause pause(60s, [&](BackgroundPause::Seconds) { waits_when_told = waits; });
  pause.set_signal(std::make_unique<SignalThatNeverComes>(waits, [&] { pause.set_requested(true); }));
  pause.restart_limit();
  const BackgroundPause::Guard guard(pause);
  pause.wait_while_paused();
  EXPECT_EQ(waits_when_told, 2) << "once for the hold, once for the pause";
}

TEST(PauseOfWork, EndsWithTheWork) {
  BackgroundPause pause(60s);
  pause.set_signal(signal());
  pause.restart_limit();
  pause.set_requested(true);
  std::jthread end([&] {
    std::this_thread::sleep_for(20ms);
    pause.end_pauses();
  });
  EXPECT_LT(seconds_of([&] { pause.wait_while_paused(); }), 30);
}

}  // namespace
}  // namespace kedge::faults::pause_test
