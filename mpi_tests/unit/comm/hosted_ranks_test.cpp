// Several ranks in one process communicate as ranks do; one whose messages fail, or that throws, does not hold up the
// others.
#include "comm/hosted/hosted_ranks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "harness/communicator_contract.hpp"
#include "kedge/error.hpp"

namespace kedge::comm::hosted_ranks_test {
namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

/// Between processes that are threads.
class Wires {
 public:
  explicit Wires(int processes) : inboxes_(static_cast<std::size_t>(processes)) {}
  void cut() { is_cut_ = true; }

  class Link final : public ProcessLink {
   public:
    Link(Wires& wires, int process) : wires_(wires), process_(process) {}
    [[nodiscard]] int process() const noexcept override { return process_; }
    [[nodiscard]] int process_count() const noexcept override { return static_cast<int>(wires_.inboxes_.size()); }
    [[nodiscard]] std::string library() const override { return "wires"; }
    void send(int to, std::vector<std::byte> message) override {
      check();
      const std::lock_guard guard(wires_.mutex_);
      wires_.inboxes_.at(static_cast<std::size_t>(to)).push_back(std::move(message));
    }
    [[nodiscard]] std::optional<std::vector<std::byte>> receive() override {
      check();
      const std::lock_guard guard(wires_.mutex_);
      auto& inbox = wires_.inboxes_.at(static_cast<std::size_t>(process_));
      if (inbox.empty()) return std::nullopt;
      auto message = std::move(inbox.front());
      inbox.pop_front();
      return message;
    }
    [[nodiscard]] bool is_idle() override { return true; }

   private:
    void check() const {
      if (wires_.is_cut_) throw Error(ErrorCode::rank_failed, "the wire was cut");
    }
    Wires& wires_;
    int process_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::deque<std::vector<std::byte>>> inboxes_;
  std::atomic<bool> is_cut_ = false;
};

/// What each rank threw; empty if nothing.
std::vector<std::string> run(Wires& wires, int processes, const std::vector<int>& hosts,
                             const std::function<void(Communicator&)>& body) {
  std::vector<std::string> words(hosts.size());
  std::vector<std::jthread> threads;
  for (int process = 0; process < processes; ++process) {
    threads.emplace_back([&, process] {
      Wires::Link link(wires, process);
      HostedRanks hosted(hosts, processes == 1 ? nullptr : &link);
      const auto thrown = hosted.run(
          [&](int /*rank*/, std::unique_ptr<Transport> transport) {
            const auto communicator = make_communicator(std::move(transport));
            communicator->connect(soon());
            body(*communicator);
          },
          std::chrono::seconds(20));
      for (std::size_t index = 0; index < thrown.size(); ++index) {
        try {
          if (thrown[index]) std::rethrow_exception(thrown[index]);
        } catch (const Error& error) {
          words.at(static_cast<std::size_t>(hosted.ranks()[index])) = to_string(error.failure());
        }
      }
    });
  }
  threads.clear();
  return words;
}

/// Neighbours in turns on different processes, so that most messages leave theirs.
std::vector<int> dealt(int ranks, int processes) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank % processes);
  return hosts;
}

using Parameter = std::tuple<contract::Case, std::array<int, 2>>;

std::string name_of(const ::testing::TestParamInfo<Parameter>& info) {
  const auto& [which, shape] = info.param;
  return which.name + std::to_string(shape[0]) + "On" + std::to_string(shape[1]);
}

class HostedContract : public ::testing::TestWithParam<Parameter> {};

TEST_P(HostedContract, BlockedCalls) {
  const auto& [which, shape] = GetParam();
  const auto [ranks, processes] = shape;
  Wires wires(processes);
  for (const std::string& words : run(wires, processes, dealt(ranks, processes), which.check)) EXPECT_EQ(words, "");
}

// One process; as many as ranks; some with several; more than there are ranks.
INSTANTIATE_TEST_SUITE_P(All, HostedContract,
                         ::testing::Combine(::testing::ValuesIn(contract::cases().begin(), contract::cases().end()),
                                            ::testing::Values(std::array{1, 1}, std::array{4, 1}, std::array{3, 3},
                                                              std::array{5, 2}, std::array{8, 3}, std::array{2, 3})),
                         name_of);

// A rank that sends faster than another one receives must not fill that one's memory.
TEST(HostedRanks, ALargeMessageIsSentWhenItIsReceived) {
  for (const int processes : {1, 2}) {
    Wires wires(processes);
    const auto words = run(wires, processes, dealt(2, processes), [](Communicator& communicator) {
      std::vector<std::byte> bytes(100'000, static_cast<std::byte>(communicator.rank()));
      std::vector<std::byte> word(1);
      if (communicator.rank() == 0) {
        auto large = communicator.send(1, 1, bytes);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(communicator.test(large));
        auto asks = communicator.send(1, 2, word);
        communicator.wait(std::span(&asks, 1), soon());
        communicator.wait(std::span(&large, 1), soon());
      } else {
        auto asked = communicator.receive(0, 2, word);
        communicator.wait(std::span(&asked, 1), soon());
        auto large = communicator.receive(0, 1, bytes);
        communicator.wait(std::span(&large, 1), soon());
        EXPECT_EQ(bytes, std::vector<std::byte>(bytes.size()));
      }
    });
    EXPECT_EQ(words, std::vector<std::string>(2)) << processes;
  }
}

TEST(HostedRanks, AMessageOfAnotherSizeIsRefused) {
  for (const int processes : {1, 2}) {
    Wires wires(processes);
    const auto words = run(wires, processes, dealt(2, processes), [](Communicator& communicator) {
      std::vector<std::byte> bytes(communicator.rank() == 0 ? 5 : 4);
      auto request = communicator.rank() == 0 ? communicator.send(1, 1, bytes) : communicator.receive(0, 1, bytes);
      communicator.wait(std::span(&request, 1), soon());
    });
    EXPECT_EQ(words[0], "");
    EXPECT_NE(words[1].find("bad_state"), std::string::npos) << words[1];
  }
}

TEST(HostedRanks, ALinkThatFailsEndsEveryWait) {
  Wires wires(2);
  const auto words = run(wires, 2, dealt(4, 2), [&](Communicator& communicator) {
    communicator.barrier(soon());
    if (communicator.rank() == 0) wires.cut();
    std::vector<std::byte> never(1);
    auto request = communicator.receive((communicator.rank() + 1) % 4, 1, never);
    communicator.wait(std::span(&request, 1), soon());
  });
  for (const std::string& one : words) EXPECT_NE(one.find("rank_failed"), std::string::npos) << one;
}

TEST(HostedRanks, AProcessThatDoesNotEndIsNotWaitedForForEver) {
  Wires wires(2);
  Wires::Link link(wires, 0);  // of the other one nothing is ever heard
  HostedRanks hosted({0}, &link);
  try {
    (void)hosted.run([](int, std::unique_ptr<Transport>) {}, std::chrono::milliseconds(50));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::rank_failed);
  }
}

TEST(HostedRanks, ACauseIsReportedRatherThanWhatFollowsFromIt) {
  const auto thrown_as = [](ErrorCode code) { return std::make_exception_ptr(Error(code, "")); };
  const auto code_of = [](const std::vector<std::exception_ptr>& thrown) -> std::optional<ErrorCode> {
    try {
      rethrow_cause(thrown);
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  EXPECT_EQ(code_of({nullptr, nullptr}), std::nullopt);
  EXPECT_EQ(code_of({thrown_as(ErrorCode::timeout), nullptr, thrown_as(ErrorCode::io)}), ErrorCode::io);
  EXPECT_EQ(code_of({nullptr, thrown_as(ErrorCode::timeout)}), ErrorCode::timeout);
}

TEST(HostedRanks, ARankThatThrowsDoesNotHoldUpTheOthers) {
  Wires wires(2);
  const auto words = run(wires, 2, dealt(4, 2), [&](Communicator& communicator) {
    communicator.barrier(soon());
    if (communicator.rank() == 2) throw Error(ErrorCode::io, "this rank alone");
  });
  EXPECT_EQ(words, (std::vector<std::string>{"", "", "io: this rank alone", ""}));
}

}  // namespace
}  // namespace kedge::comm::hosted_ranks_test
