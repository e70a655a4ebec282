// Handlers of signals: chained, shared by engines, restored afterwards, and left alone in the child of a fork.
#include "base/exit_signals.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kedge::exit_signals_test {
namespace {

using Names = std::vector<std::string>;

volatile std::sig_atomic_t calls = 0;       // NOLINT: what handlers reach
volatile std::sig_atomic_t calls_over = 0;  // NOLINT
struct sigaction below {};                  // NOLINT

void count(int /*signal*/) {
  calls = calls + 1;
  errno = EDOM;
}
void count_with_info(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_signo == signal && info->si_pid == ::getpid()) calls = calls + 1;
}
/// A well-behaved handler over another.
void count_and_chain(int signal, siginfo_t* info, void* context) {
  calls_over = calls_over + 1;
  if ((below.sa_flags & SA_SIGINFO) != 0) below.sa_sigaction(signal, info, context);
}

struct sigaction action_of(int signal) {
  struct sigaction action {};
  EXPECT_EQ(::sigaction(signal, nullptr, &action), 0);
  return action;
}

class ExitSignalsTest : public testing::Test {
 protected:
  ExitSignalsTest() {
    calls = 0;
    calls_over = 0;
    for (const int signal : {SIGTERM, SIGUSR1}) std::signal(signal, SIG_DFL);
  }
  ~ExitSignalsTest() override {
    for (const int signal : {SIGTERM, SIGUSR1}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(ExitSignalsTest, NamesAreThoseOfTheSystem) {
  EXPECT_EQ(parse_exit_signal("SIGTERM"), SIGTERM);
  EXPECT_EQ(parse_exit_signal("SIGXCPU"), SIGXCPU);
  for (const char* name : {"", "TERM", "sigterm", "SIGKILL", "SIGSEGV", "15", "SIGTERM "}) {
    EXPECT_EQ(parse_exit_signal(name), std::nullopt) << name;
  }
  EXPECT_EQ(exit_signal_name(SIGUSR1), "SIGUSR1");
}

TEST_F(ExitSignalsTest, OneThatCameIsNotedAndKillsNothing) {
  const ExitSignals signals(Names{"SIGTERM", "SIGUSR1"});
  EXPECT_EQ(signals.received_signal(), 0);
  std::raise(SIGUSR1);
  EXPECT_EQ(signals.received_signal(), SIGUSR1);
  EXPECT_EQ(signals.received_signal(), SIGUSR1) << "from then on";
  std::thread([] { std::raise(SIGTERM); }).join();
  EXPECT_EQ(signals.received_signal(), SIGTERM);
}

TEST_F(ExitSignalsTest, OthersAreLeftAlone) {
  const ExitSignals signals(Names{"SIGUSR1", "SIGKILL", "nonsense"});
  EXPECT_EQ(action_of(SIGTERM).sa_handler, SIG_DFL);
  EXPECT_TRUE(signals.unwatched_signals().empty());
}

TEST_F(ExitSignalsTest, TheHandlerBeforeIsCalledAndRestored) {
  std::signal(SIGUSR1, count);
  {
    const ExitSignals signals(Names{"SIGUSR1"});
    errno = ERANGE;
    std::raise(SIGUSR1);
    std::raise(SIGUSR1);
    EXPECT_EQ(errno, ERANGE) << "of what the signal interrupted";
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(signals.received_signal(), SIGUSR1);
  }
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, count);
  std::raise(SIGUSR1);
  EXPECT_EQ(calls, 3);
}

TEST_F(ExitSignalsTest, TheHandlerBeforeGetsAllThatComesWithTheSignal) {
  struct sigaction action {};
  action.sa_sigaction = count_with_info;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  const ExitSignals signals(Names{"SIGUSR1"});
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  EXPECT_EQ(calls, 1);
}

TEST_F(ExitSignalsTest, AHandlerForOneSignalIsCalledForOne) {
  struct sigaction action {};
  action.sa_handler = count;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  const ExitSignals signals(Names{"SIGUSR1"});
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  EXPECT_EQ(calls, 1);
}

TEST_F(ExitSignalsTest, WhatWasIgnoredIsNotedAndIgnoredAgain) {
  std::signal(SIGUSR1, SIG_IGN);
  {
    const ExitSignals signals(Names{"SIGUSR1"});
    std::raise(SIGUSR1);
    EXPECT_EQ(signals.received_signal(), SIGUSR1);
  }
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, SIG_IGN);
}

TEST_F(ExitSignalsTest, SeveralShareOneHandlerUntilTheLastEnds) {
  std::signal(SIGUSR1, count);
  auto first = std::make_unique<ExitSignals>(Names{"SIGUSR1"});
  std::raise(SIGUSR1);
  auto second = std::make_unique<ExitSignals>(Names{"SIGUSR1"});
  EXPECT_EQ(second->received_signal(), 0) << "it came before";
  std::raise(SIGUSR1);
  EXPECT_EQ(calls, 2) << "each signal is passed on once";
  EXPECT_EQ(second->received_signal(), SIGUSR1);
  first.reset();
  std::raise(SIGUSR1);
  EXPECT_EQ(calls, 3);
  EXPECT_NE(action_of(SIGUSR1).sa_handler, count);
  second.reset();
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, count);
}

/// Over ours, as libraries and languages do.
void install_over(int signal) {
  struct sigaction action {};
  action.sa_sigaction = count_and_chain;
  action.sa_flags = SA_SIGINFO;
  EXPECT_EQ(::sigaction(signal, &action, &below), 0);
}

TEST_F(ExitSignalsTest, AHandlerThatTheProgramInstalledSinceStays) {
  std::signal(SIGUSR1, count);
  {
    const ExitSignals signals(Names{"SIGUSR1"});
    install_over(SIGUSR1);
    std::raise(SIGUSR1);
    EXPECT_EQ(signals.received_signal(), SIGUSR1);
  }
  EXPECT_EQ(action_of(SIGUSR1).sa_sigaction, count_and_chain);
  std::raise(SIGUSR1);
  EXPECT_EQ(calls_over, 2);
  EXPECT_EQ(calls, 2) << "which still reaches the first one";
  const ExitSignals again(Names{"SIGUSR1"});
  std::raise(SIGUSR1);
  EXPECT_EQ(again.received_signal(), SIGUSR1);
  EXPECT_EQ(calls_over, 3);
  EXPECT_EQ(calls, 3) << "once each, and not in a circle";
}

TEST_F(ExitSignalsTest, WhereAnotherHandlerWasInstalledTheNextEngineHearsOfSignalsAgain) {
  const ExitSignals first(Names{"SIGUSR1"});
  std::signal(SIGUSR1, count);  // calls nobody
  std::raise(SIGUSR1);
  EXPECT_EQ(first.received_signal(), 0);
  const ExitSignals second(Names{"SIGUSR1"});
  std::raise(SIGUSR1);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(second.received_signal(), SIGUSR1);
}

/// How a child ends that does this.
template <class Body>
int end_of_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(ExitSignalsTest, TheChildOfAForkIsKilledAsBefore) {
  const ExitSignals signals(Names{"SIGTERM"});
  const int status = end_of_child([] { std::raise(SIGTERM); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(signals.received_signal(), 0);
}

TEST_F(ExitSignalsTest, AChildWithAnEngineOfItsOwnIsNot) {
  const ExitSignals signals(Names{"SIGTERM"});
  const int status = end_of_child([] {
    const ExitSignals own(Names{"SIGTERM"});
    std::raise(SIGTERM);
    if (own.received_signal() != SIGTERM) ::_exit(2);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// In a child, since what is left over lasts as long as the process.
TEST_F(ExitSignalsTest, HandlersThatAreLeftOverAreAtMostFourAndNoneCallsItself) {
  const int status = end_of_child([] {
    std::signal(SIGTERM, count);
    for (int round = 1; round <= 6; ++round) {
      {
        const ExitSignals signals(Names{"SIGTERM"});
        if (signals.unwatched_signals().size() != (round <= 4 ? 0U : 1U)) ::_exit(1);
        std::raise(SIGTERM);
        if ((signals.received_signal() == SIGTERM) != (round <= 4)) ::_exit(2);
        if (calls != 1) ::_exit(3);
        std::signal(SIGTERM, count);
      }
      calls = 0;
    }
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace kedge::exit_signals_test
