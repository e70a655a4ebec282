// A mapped file of the store is truncated by another process in the midst of a call that reads or writes it: an error
// on all ranks, never a signal. On the real memory-backed filesystem, since only that sends one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/blocking_files.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/page_trap.hpp"
#include "harness/real_stores.hpp"

namespace kedge::faults::harmed_in_use_test {
namespace {

constexpr int kHarmed = 1;                             // the rank whose file it is
constexpr std::size_t kLarge = std::size_t{8} << 20U;  // bytes of a region
constexpr off_t kLeft = off_t{1} << 20U;

/// What a handler truncates: it can be given nothing.
std::vector<std::string> in_danger;
void truncate_all() {
  for (const std::string& path : in_danger) (void)::truncate(path.c_str(), kLeft);
}

class HarmedInUse : public OnRealStores {
 protected:
  void SetUp() override {
    OnRealStores::SetUp();
    job.options.store.copy_threads = 1;  // so that the trap springs in the midst of a copy
  }
  void TearDown() override {
    in_danger.clear();
    OnRealStores::TearDown();
  }

  /// All containers of the harmed rank, or that of one step.
  void endanger(std::optional<int> step = std::nullopt) const {
    in_danger.clear();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(compose("rank-{}.", kHarmed)) || !name.ends_with(".h5")) continue;
      char middle = 0;
      std::ifstream(entry.path()).seekg(kLarge / 2).get(middle);
      if (!step || std::byte(middle) == content(kHarmed, *step).front()) in_danger.push_back(entry.path());
    }
  }
  static std::vector<std::byte> content(int rank, int step) {
    return std::vector<std::byte>(kLarge, static_cast<std::byte>(16 * step + rank + 1));
  }
  static void commit(Engine& engine, int rank, int step) {
    engine.create(compose("{}", step));
    const auto bytes = content(rank, step);
    (void)engine.save("v", region(std::span(bytes)));  // commit tells
    engine.commit();
  }
};

TEST_F(HarmedInUse, SaveFailsOnAllRanks) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 3; ++step) commit(engine, scope.rank, step);  // files are mapped, and recycled
    testing::PageTrap source(kLarge, truncate_all);
    once(engine, scope.rank, [&] { endanger(); });
    engine.create("4");
    if (scope.rank == kHarmed) source.arm();
    EXPECT_EQ(engine.save("v", region(std::span<const std::byte>(source.memory()))).ok(), scope.rank != kHarmed);
    const auto failure = attempt([&] { engine.commit(); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_EQ(failure->rank, kHarmed);
    EXPECT_TRUE(says(failure->message, {"truncated by another process"})) << failure->message;
    commit(engine, scope.rank, 5);
    EXPECT_EQ(engine.open(), "5");
    std::vector<std::byte> back(kLarge);
    EXPECT_TRUE(engine.load("v", mutable_region(std::span(back))).ok());
    EXPECT_EQ(back, content(scope.rank, 5));
    engine.close();
  }));
}

/// Between two saves: the container grows, and would have its old size again.
TEST_F(HarmedInUse, WhatWasTruncatedBeforeItGrewIsNoCommit) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("1");
    const auto bytes = content(scope.rank, 1);
    const auto part = std::span(bytes).first(std::size_t{1} << 20U);
    for (const char* name : {"a", "b", "c", "d"}) {
      (void)engine.save(name, region(part));
      if (scope.rank != kHarmed || name[0] != 'b') continue;
      endanger();
      for (const std::string& path : in_danger) ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    }
    const auto failure = attempt([&] { engine.commit(); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_EQ(failure->rank, kHarmed);
  }));
}

TEST_F(HarmedInUse, LoadFailsOnAllRanksAndTheNextOpenRebuilds) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, scope.rank, 1);
    engine.wait("1", Level::protected_);
    testing::PageTrap target(kLarge, truncate_all);
    once(engine, scope.rank, [&] { endanger(); });
    EXPECT_EQ(engine.open(), "1");
    if (scope.rank == kHarmed) target.arm();
    EXPECT_EQ(engine.load("v", mutable_region(target.memory())).ok(), scope.rank != kHarmed);
    const auto failure = attempt([&] { engine.close(); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::corrupt);
    EXPECT_EQ(failure->rank, kHarmed);
  }));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<std::byte> back(kLarge);
    EXPECT_EQ(engine.restore(State().add("v", back)), "1");
    EXPECT_EQ(back, content(scope.rank, 1));
  }));
}

TEST_F(HarmedInUse, RestoreRebuildsOrTakesTheOneBefore) {
  for (const bool protects : {true, false}) {
    SCOPED_TRACE(protects ? "protected" : "local");
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit(engine, scope.rank, 1);
      commit(engine, scope.rank, 2);
      if (protects) engine.wait("2", Level::protected_);
      once(engine, scope.rank, [&] { endanger(2); });
      EXPECT_EQ(in_danger.size(), 1U);
      testing::PageTrap target(kLarge, truncate_all);
      if (scope.rank == kHarmed) target.arm();
      const std::span<std::byte> bytes = target.memory();
      State state;
      state.add("v", mutable_region(bytes));
      EXPECT_EQ(engine.restore(state), protects ? "2" : "1");
      EXPECT_TRUE(std::ranges::equal(bytes, content(scope.rank, protects ? 2 : 1)));
      EXPECT_TRUE(scope.rank != kHarmed || testing::PageTrap::was_triggered());
      engine.finalize();
    }));
    std::filesystem::remove_all(directory + "/node0");
    std::filesystem::remove_all(directory + "/node1");
    std::filesystem::remove_all(directory + "/prefix/.kedge");
  }
}

/// Truncates files before messages that are large.
class Truncating final : public testing::ForwardingCommunicator {
 public:
  Truncating(std::unique_ptr<Communicator> inner, std::function<void()> truncate)
      : ForwardingCommunicator(*inner), owned_(std::move(inner)), truncate_(std::move(truncate)) {}
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override {
    return std::make_unique<Truncating>(inner().duplicate(deadline), truncate_);
  }
  [[nodiscard]] Request send(int to, int channel, std::span<const std::byte> bytes) override {
    constexpr std::size_t kSomeBytes = 4096;
    if (bytes.size() > kSomeBytes) truncate_();
    return inner().send(to, channel, bytes);
  }

 private:
  std::unique_ptr<Communicator> owned_;
  std::function<void()> truncate_;
};

TEST_F(HarmedInUse, WhatIsSentWhileItIsTruncatedIsNoProtection) {
  job.in_front = [](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
    if (rank != kHarmed) return own;
    return std::make_unique<Truncating>(std::move(own), truncate_all);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, scope.rank, 1);
    once(engine, scope.rank, [&] { endanger(); });
    const auto failure = attempt([&] { engine.wait("1", Level::protected_); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_EQ(failure->rank, kHarmed);
    EXPECT_EQ(engine.level("1"), Level::local);
  }));
}

/// What the other rank lost is rebuilt from this rank's files: whoever makes parity of zeros does not see that.
TEST_F(HarmedInUse, WhatIsSentWhileItIsTruncatedRebuildsNothing) {
  constexpr int kSender = 0;
  job.pieces.bytes = 2 * kLarge;  // read, and checked, before it is truncated
  for (const char* kind : {"rank-", "parity-"}) {
    SCOPED_TRACE(kind);
    job.in_front = {};
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit(engine, scope.rank, 1);
      engine.wait("1", Level::protected_);
    }));
    std::filesystem::remove_all(directory + "/node1");
    in_danger.clear();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/node0")) {
      if (entry.path().filename().string().starts_with(compose("{}{}.", kind, kSender)))
        in_danger.push_back(entry.path());
    }
    job.in_front = [](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
      if (rank != kSender) return own;
      return std::make_unique<Truncating>(std::move(own), truncate_all);
    };
    const std::size_t before = job.log().size();
    expect_all_failed(job.start([&](RankScope& scope) { (void)scope.make_engine().open(); }), ErrorCode::unrecoverable);
    const auto lines = job.log();
    EXPECT_EQ(
        std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end(),
                      [](const std::string& line) {
                        return says(line, {"could not be recovered", "truncated by another process; do not touch"});
                      }),
        1);
    std::filesystem::remove_all(directory + "/node0");
    std::filesystem::remove_all(directory + "/prefix/.kedge");
  }
}

/// The prefix is not to blame.
TEST_F(HarmedInUse, WhatIsFlushedWhileItIsTruncatedIsNotPersistent) {
  BlockedCalls holds;
  holds.making = [this](const std::string& path) {
    if (path.starts_with(directory + "/prefix/") && path.ends_with(compose("rank-{}.h5", kHarmed))) truncate_all();
  };
  job.surroundings = [&](int, start::Environment& environment) {
    environment.file_system = std::make_shared<BlockingFiles>(fs::posix_file_system(), holds);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, scope.rank, 1);
    once(engine, scope.rank, [&] { endanger(); });
    const auto failure = attempt([&] { engine.wait("1", Level::persistent); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, kHarmed);
    EXPECT_TRUE(says(failure->message, {"truncated by another process"})) << failure->message;
    EXPECT_EQ(engine.level("1"), Level::local);
  }));
}

/// Parity that is written as it comes, whose beginning somebody cuts off: the next write gives it its old size again.
TEST_F(HarmedInUse, ParityWithAHoleIsNoProtection) {
  job.pieces.bytes = 1U << 20U;
  job.in_front = [this](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
    if (rank != kHarmed) return own;
    return std::make_unique<Truncating>(std::move(own), [this, sent = std::make_shared<int>()] {
      if (++*sent != 4) return;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/node1")) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("parity-")) (void)::truncate(entry.path().c_str(), kLeft);
      }
    });
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, scope.rank, 1);
    const auto failure = attempt([&] { engine.wait("1", Level::protected_); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, kHarmed);
    EXPECT_EQ(engine.level("1"), Level::local);
  }));
}

TEST_F(HarmedInUse, AContainerThatWasReplacedByAnotherIsNotProtected) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, scope.rank, 1);
    engine.wait("1", Level::protected_);
    commit(engine, scope.rank, 2);
    once(engine, scope.rank, [&] {
      endanger(1);
      const std::string older = in_danger.at(0);
      endanger(2);
      const int from = ::open(older.c_str(), O_RDONLY | O_CLOEXEC);
      const int to = ::open(in_danger.at(0).c_str(), O_WRONLY | O_CLOEXEC);
      EXPECT_GT(::sendfile(to, from, nullptr, 2 * kLarge), 0);
      ::close(from);
      ::close(to);
    });
    const auto failure = attempt([&] { engine.wait("2", Level::protected_); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, kHarmed);
    EXPECT_EQ(engine.level("2"), Level::local);
  }));
}

/// Whoever is told that a checkpoint has a level has it, whenever the files of one node are cut off.
TEST_F(HarmedInUse, AtAnyMomentNoLevelIsToldThatIsNotReached) {
  const int rounds = std::getenv("KEDGE_TEST_FULL") != nullptr ? 400 : 8;
  std::minstd_rand random(4711);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const std::chrono::microseconds moment(std::uniform_int_distribution<int>(0, 60'000)(random));
    const bool only_prefix = round % 2 == 1;  // what is left afterwards
    int reached = 0;
    const auto later = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(moment);
      std::error_code gone;  // while files come and go
      for (std::filesystem::recursive_directory_iterator at(directory + "/node1", gone), end; at != end;
           at.increment(gone)) {
        const std::string name = at->path().filename().string();
        if (name.find("rank-") == 0 || name.find("parity-") == 0) (void)::truncate(at->path().c_str(), kLeft);
      }
    });
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 3; ++step) {
        const auto failure = attempt([&] {
          commit(engine, scope.rank, step);
          engine.wait(compose("{}", step), only_prefix ? Level::persistent : Level::protected_);
        });
        if (!failure && scope.rank == 0) reached = step;
      }
    }));
    later.wait();
    if (only_prefix)
      for (const char* node : {"/node0", "/node1"}) std::filesystem::remove_all(directory + node);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      std::vector<std::byte> back(kLarge);
      std::optional<Tag> tag;
      const auto failure = attempt([&] { tag = engine.restore(State().add("v", back)); });
      const int step = tag ? std::stoi(*tag) : 0;
      EXPECT_GE(step, reached) << (failure ? failure->message : "");
      EXPECT_TRUE(step == 0 || back == content(scope.rank, step));
    }));
    for (const char* part : {"/node0", "/node1", "/prefix"}) std::filesystem::remove_all(directory + part);
    std::filesystem::create_directory(directory + "/prefix");
  }
}

}  // namespace
}  // namespace kedge::faults::harmed_in_use_test
