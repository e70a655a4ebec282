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
#include "pipeline/pause.hpp"

namespace kedge::faults::pause_test {
namespace {

using pipeline::Pause;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;
using namespace std::chrono_literals;

std::unique_ptr<Communicator::Signal> signal() { return single_process()->signal(); }

TEST(PauseOfWork, LastsAsLongAsItIsAskedFor) {
  Pause pause(60s);
  pause.set_signal(signal());
  pause.begin();
  EXPECT_LT(seconds_of([&] { pause.pass(); }), 1);
  pause.ask(true);
  std::jthread application([&] {
    std::this_thread::sleep_for(50ms);
    pause.ask(false);
  });
  EXPECT_THAT(seconds_of([&] { pause.pass(); }), AllOf(Ge(0.04), Lt(30)));
  application.join();
  {
    auto hold = std::make_unique<Pause::Guard>(pause);
    application = std::jthread([&] {
      std::this_thread::sleep_for(50ms);
      hold.reset();
    });
    EXPECT_THAT(seconds_of([&] { pause.pass(); }), AllOf(Ge(0.04), Lt(30)));
  }
  EXPECT_THAT(pause.paused_time().count(), AllOf(Ge(0.08), Lt(60)));
}

TEST(PauseOfWork, EndsWhereTheApplicationWaitsForTheWork) {
  Pause pause(60s);
  pause.set_signal(signal());
  pause.begin();
  pause.ask(true);
  std::jthread application([&] {
    std::this_thread::sleep_for(20ms);
    const Pause::Awaited awaited(pause);
    std::this_thread::sleep_for(50ms);
  });
  EXPECT_LT(seconds_of([&] { pause.pass(); }), 30);
  application.join();
  const Pause::Awaited awaited(pause);
  EXPECT_LT(seconds_of([&] { pause.pass(); }), 1);
}

TEST(PauseOfWork, HasALimitForEachCommit) {
  Pause pause(50ms);
  pause.set_signal(signal());
  pause.ask(true);
  for (int commit = 0; commit < 2; ++commit) {
    pause.begin();
    const double first = seconds_of([&] { pause.pass(); });
    EXPECT_GE(first, 0.04);
    EXPECT_LT(first, 5);
    EXPECT_LT(seconds_of([&] { pause.pass(); }), 0.04) << "the limit is for all pieces together";
  }
}

/// Ranks begin it together; were it counted from the first piece of each, what workers wait for each other would add
/// up.
TEST(PauseOfWork, AHoldHasItsLimitFromItsBeginning) {
  Pause pause(2s);
  pause.set_signal(signal());
  for (int turn = 0; turn < 2; ++turn) {
    const Pause::Guard guard(pause);
    std::this_thread::sleep_for(turn == 0 ? 1500ms : 2100ms);
    pause.begin();
    EXPECT_LT(seconds_of([&] { pause.pass(); }), 1.5);
    EXPECT_LT(seconds_of([&] { pause.pass(); }), 0.04) << "it does not begin again";
  }
}

TEST(PauseOfWork, IsToldOnceWhereItEndsByItsLimit) {
  std::vector<Pause::Seconds> told;
  Pause pause(20ms, [&](Pause::Seconds limit) { told.push_back(limit); });
  pause.set_signal(signal());
  const auto two_commits = [&] {
    for (int commit = 0; commit < 2; ++commit) {
      pause.begin();
      pause.pass();
      pause.pass();
    }
  };
  {
    const Pause::Guard guard(pause);
    two_commits();
  }
  EXPECT_TRUE(told.empty()) << "nobody asked for it";
  pause.ask(true);
  two_commits();
  EXPECT_EQ(told, std::vector<Pause::Seconds>{20ms});
  pause.ask(false);
  two_commits();
  EXPECT_EQ(told.size(), 1U);
  pause.ask(true);
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
  Pause pause(60s, [&](Pause::Seconds) { waits_when_told = waits; });
  pause.set_signal(std::make_unique<SignalThatNeverComes>(waits, [&] { pause.ask(true); }));
  pause.begin();
  const Pause::Guard guard(pause);
  pause.pass();
  EXPECT_EQ(waits_when_told, 2) << "once for the hold, once for the pause";
}

TEST(PauseOfWork, EndsWithTheWork) {
  Pause pause(60s);
  pause.set_signal(signal());
  pause.begin();
  pause.ask(true);
  std::jthread end([&] {
    std::this_thread::sleep_for(20ms);
    pause.end();
  });
  EXPECT_LT(seconds_of([&] { pause.pass(); }), 30);
}

}  // namespace
}  // namespace kedge::faults::pause_test
