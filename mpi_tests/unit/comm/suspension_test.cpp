// All of a process stands still for longer than its waits may take, and goes on: over TCP, between hosted ranks and
// threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "harness/socket_ranks.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "kedge/transport.hpp"
#include "pipeline/background_pause.hpp"

namespace kedge::comm::suspension_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Bytes = std::array<std::byte, 3>;

constexpr milliseconds kBefore{300};
constexpr milliseconds kStopped{4000};
constexpr milliseconds kAfter{400};
constexpr milliseconds kLimit{3000};  // more than before and after, less than what it is stopped for
constexpr Bytes kSent{std::byte{1}, std::byte{2}, std::byte{3}};

/// A process that stops this one for a while.
class Stopper {
 public:
  explicit Stopper(milliseconds stopped) {
    child_ = ::fork();
    if (child_ != 0) return;
    sleep_for(kBefore);
    ::kill(::getppid(), SIGSTOP);
    sleep_for(stopped);
    ::kill(::getppid(), SIGCONT);
    ::_exit(0);
  }
  ~Stopper() { ::waitpid(child_, nullptr, 0); }
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

 private:
  static void sleep_for(milliseconds time) {
    const ::timespec left{time.count() / 1000, time.count() % 1000 * 1'000'000};
    (void)::nanosleep(&left, nullptr);
  }
  ::pid_t child_ = -1;
};

/// A kind of wait between two threads. Both call `ready` before one begins to wait for what the other does at
/// `comes_at`.
struct Wait {
  std::string name;
  std::function<void(const std::function<void()>& ready, Clock::time_point comes_at)> check;
};

Deadline limit() { return Deadline::after(kLimit); }

/// Rank 0 waits for what rank 1 sends then.
void receive_late(Communicator& communicator, const std::function<void()>& ready, Clock::time_point comes_at) {
  communicator.connect(Deadline::after(std::chrono::seconds(20)));
  Bytes bytes{};
  if (communicator.rank() == 1) {
    ready();
    std::this_thread::sleep_until(comes_at);
    std::array request{communicator.send(0, 1, kSent)};
    communicator.wait(request, limit());
  } else {
    ready();
    std::array request{communicator.receive(1, 1, bytes)};
    communicator.wait(request, limit());
    if (bytes != kSent) throw Error(ErrorCode::io, "wrong bytes");
  }
  communicator.barrier(Deadline::after(std::chrono::seconds(20)));
}

void over_sockets(const std::function<void()>& ready, Clock::time_point comes_at) {
  std::latch done(2);
  const auto failures = testing::run_socket_ranks(testing::socket_plans(2), [&](SocketTransport& transport) {
    const auto communicator = make_communicator(transport.open_channel(limit()));
    const auto failure = attempt([&] { receive_late(*communicator, ready, comes_at); });
    done.arrive_and_wait();
    if (failure) throw Error(*failure);
  });
  for (const auto& failure : failures) {
    if (failure) throw Error(*failure);
  }
}

void between_hosted_ranks(const std::function<void()>& ready, Clock::time_point comes_at) {
  HostedRanks hosted({0, 0}, nullptr);
  const auto thrown = hosted.run(
      [&](int /*rank*/, std::unique_ptr<Transport> transport) {
        receive_late(*make_communicator(std::move(transport)), ready, comes_at);
      },
      std::chrono::seconds(20));
  for (const auto& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
}

void for_a_signal(const std::function<void()>& ready, Clock::time_point comes_at) {
  const auto signal = single_process()->signal();
  const std::jthread other([&] {
    std::this_thread::sleep_until(comes_at);
    signal->raise();
  });
  ready();
  ready();
  if (!signal->wait(limit())) throw Error(ErrorCode::timeout, "the signal was not waited for");
}

void for_a_thread(const std::function<void()>& ready, Clock::time_point comes_at) {
  const auto ended = single_process()->start_thread([comes_at] { std::this_thread::sleep_until(comes_at); });
  ready();
  ready();
  if (!ended->join(limit())) throw Error(ErrorCode::timeout, "the thread was not waited for");
}

/// A pause that resume() ends after the suspension does not end by its time limit before.
void in_a_pause(const std::function<void()>& ready, Clock::time_point comes_at) {
  std::atomic<bool> is_too_long = false;
  pipeline::BackgroundPause pause(kLimit, [&](auto) { is_too_long = true; });
  pause.set_signal(single_process()->signal());
  pause.set_requested(true);
  const std::jthread other([&] {
    std::this_thread::sleep_until(comes_at);
    pause.set_requested(false);
  });
  pause.restart_limit();
  ready();
  ready();
  pause.wait_while_paused();
  if (is_too_long || Clock::now() < comes_at) throw Error(ErrorCode::timeout, "the pause ended by itself");
}

TEST(Suspension, NoWaitEndsByTimeInWhichNobodyRan) {
  const std::vector<Wait> waits{{"sockets", over_sockets},
                                {"hosted ranks", between_hosted_ranks},
                                {"signal", for_a_signal},
                                {"thread", for_a_thread},
                                {"pause", in_a_pause}};
  std::latch all_ready(2 * static_cast<std::ptrdiff_t>(waits.size()) + 1);
  std::vector<std::optional<Failure>> failures(waits.size());
  {
    std::vector<std::jthread> threads;
    const Clock::time_point planned = Clock::now() + kBefore + kBefore + kStopped + kAfter;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      threads.emplace_back(
          [&, i] { failures[i] = attempt([&] { waits[i].check([&] { all_ready.count_down(); }, planned); }); });
    }
    all_ready.arrive_and_wait();
    const Stopper stopper(kStopped);
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    EXPECT_FALSE(failures[i]) << waits[i].name << ": " << failures[i]->message;
  }
}

TEST(Suspension, WhoWasStoppedDoesNotBlameTheOthersAlone) {
  HostedRanks hosted({0, 0}, nullptr);
  std::latch never_sent(1);
  const auto thrown = hosted.run(
      [&](int rank, std::unique_ptr<Transport> transport) {
        const auto communicator = make_communicator(std::move(transport));
        communicator->connect(Deadline::after(std::chrono::seconds(20)));
        if (rank == 1) return never_sent.wait();
        Bytes bytes{};
        std::array request{communicator->receive(1, 1, bytes)};
        const auto failure = attempt([&] {
          const Stopper stopper(milliseconds(1000));
          communicator->wait(request, Deadline::after(milliseconds(600)));
        });
        never_sent.count_down();
        if (failure) throw Error(*failure);
      },
      std::chrono::seconds(20));
  ASSERT_TRUE(thrown[0]);
  const auto failure = attempt([&] { std::rethrow_exception(thrown[0]); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::timeout);
  EXPECT_THAT(failure->message,
              ::testing::AllOf(::testing::HasSubstr("rank 0 timed out waiting for rank 1"),
                               ::testing::ContainsRegex("it was itself stopped for (1|9[0-9][0-9][.])")));
}

}  // namespace
}  // namespace kedge::comm::suspension_test
