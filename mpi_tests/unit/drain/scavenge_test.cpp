// kedge drain by one process and kedge scavenge node by node: called twice, at the same time, with a lost node, a
// damaged copy, while a job runs; a job that died or ended later keeps nobody out, and several runs of one prefix are
// all drained.
#include "drain/scavenge.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "comm/group.hpp"
#include "drain/drain.hpp"
#include "drain/recorded_run.hpp"
#include "fs/tree.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/simulated_job.hpp"
#include "kedge/engine.hpp"
#include "kedge/testing/in_process_job.hpp"
#include "kedge/transport.hpp"
#include "unit/drain/scavenge_fixture.hpp"

namespace kedge::drain::scavenge_test {
namespace {

/// Something happens between the look into a directory, once, and what is made of it.
class Interrupted final : public faults::ForwardingFileSystem {
 public:
  Interrupted(std::shared_ptr<fs::FileSystem> inner, std::string end, std::function<void()> then)
      : ForwardingFileSystem(std::move(inner)), end_(std::move(end)), then_(std::move(then)) {}
  [[nodiscard]] std::vector<std::string> list(const std::string& path) override {
    auto names = inner().list(path);
    if (path.ends_with(end_)) std::exchange(then_, [] {})();
    return names;
  }

 private:
  std::string end_;
  std::function<void()> then_;
};

/// A prefix without any space that is free.
class Full final : public faults::ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  [[nodiscard]] fs::Space space(const std::string& path) override {
    fs::Space space = inner().space(path);
    space.free_bytes = 0;
    return space;
  }
};

/// A prefix that takes no checkpoint.
class Refusing final : public faults::ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  void make_directory(const std::string& path, std::uint32_t mode) override {
    if (path.find("/prefix/a") != std::string::npos) throw Error(Failure{ErrorCode::no_space, "full", -1, path, 0});
    inner().make_directory(path, mode);
  }
};

TEST_F(Scavenge, TheLastNodeFlushes) {
  EXPECT_NE(scavenge_store(store(1), options, world).find("1 of 2 containers have been copied"), std::string::npos);
  EXPECT_NE(scavenge_store(store(0), options, world).find("; flushed a (generation "), std::string::npos);
}

TEST_F(Scavenge, WhatIsCopiedNeedsNoSpace) {
  start::Environment full = world;
  full.file_system = std::make_shared<Full>(world.file_system);
  const auto failure = attempt([&] { (void)scavenge_store(store(1), options, full); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  (void)scavenge_store(store(1), options, world);
  EXPECT_NE(scavenge_store(store(1), options, full).find("1 of 2 containers have been copied"), std::string::npos);
}

// It has given up on the lock by the time that the other one has decided.
TEST_F(Scavenge, ACopyThatComesWhileAnotherNodeDecidesIsNotLeftAlone) {
  start::Environment first = world;
  std::string of_second;
  first.file_system = std::make_shared<Interrupted>(world.file_system, "/scavenged",
                                                    [&] { of_second = scavenge_store(store(1), options, world); });
  const std::string of_first = scavenge_store(store(0), options, first);
  EXPECT_NE(of_second.find("another node is flushing"), std::string::npos) << of_second;
  EXPECT_NE(of_first.find("; flushed a (generation "), std::string::npos) << of_first;
}

// A crash loop: what the start before last committed is flushed, as the stores show that nobody is at work.
TEST_F(Scavenge, AJobThatWasStartedAgainAndDiedIsNotWaitedFor) {
  start_again_and_die();
  (void)scavenge_store(store(1), options, world);
  EXPECT_NE(scavenge_store(store(0), options, world).find("; flushed a (generation "), std::string::npos);
}

TEST_F(Scavenge, AnEngineThatFinalizedWithoutACommitIsNotAtWork) {
  start_again([](Engine& engine) { engine.finalize(); });
  (void)scavenge_store(store(1), options, world);
  EXPECT_NE(scavenge_store(store(0), options, world).find("; flushed a (generation "), std::string::npos);
}

TEST_F(Scavenge, AStartThatLeftNoLockHereMayBeAtWorkElsewhere) {
  start_again_and_die();
  remove_locks_of_second_start();
  (void)scavenge_store(store(1), options, world);
  const auto failure = attempt([&] { (void)scavenge_store(store(0), options, world); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
  EXPECT_NE(failure->message.find("locks are not in the stores"), std::string::npos) << failure->message;
}

// The next start makes place for itself only once it is the newest: until then the dead one's locks say that it is
// dead.
TEST_F(Scavenge, AStartThatFailedHidesNoDeadOne) {
  start_again_and_die();
  const std::string find_conflict = store(0) + "/nonce-1-0-" + std::string(32, '1');  // the start cannot remove it
  world.file_system->make_directory(find_conflict);
  world.file_system->make_directory(find_conflict + "/full");
  testing::InProcessJob job(2, options);
  for (const auto& outcome : job.start([](Engine& /*engine*/, Communicator& /*communicator*/) {})) {
    EXPECT_FALSE(outcome.returned());
  }
  (void)scavenge_store(store(1), options, world);
  EXPECT_NE(scavenge_store(store(0), options, world).find("; flushed a (generation "), std::string::npos);
}

TEST_F(DrainAlone, OtherRunsOfThePrefixAreNamed) {
  const auto commit_as = [&](const std::string& run) {
    options.run = run;
    start_again([](Engine& engine) {
      engine.create("b");
      engine.commit();
    });
  };
  commit_as("cold");
  options.run.clear();
  EXPECT_NE(drained().find("; of run 'main', the prefix also has 'cold' (--run, --all-runs)"), std::string::npos);
  options.run = "cold";
  EXPECT_EQ(drained().find("--all-runs"), std::string::npos) << "it was chosen";
  (void)fs::remove_tree(*world.file_system, directory + "/prefix/.kedge/main");
  commit_as("cold.ice");
  options.run.clear();
  const auto failure = attempt([&] { (void)drained(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::mismatch);
  EXPECT_NE(failure->message.find("the runs 'cold', 'cold.ice'; name one with --run"), std::string::npos);
  const std::string prefix = directory + "/prefix";
  using Names = std::vector<std::string>;
  EXPECT_EQ(recorded_runs(*world.file_system, prefix, ""), (Names{"cold", "cold.ice"}));
  EXPECT_EQ(recorded_runs(*world.file_system, prefix, "cold"), (Names{"cold", "cold.ice"}));
  EXPECT_EQ(recorded_runs(*world.file_system, prefix, "col"), Names{});
}

TEST_F(DrainAlone, AJobThatWasStartedAgainAndDiedIsNotWaitedFor) {
  start_again_and_die();
  EXPECT_EQ(drained().find("drained a (generation "), 0U);
}

TEST_F(DrainAlone, AFailedDrainHidesNoDeadStart) {
  start_again_and_die();
  const auto files = std::exchange(world.file_system, std::make_shared<Refusing>(world.file_system));
  const auto failure = attempt([&] { (void)drained(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space) << to_string(*failure);
  world.file_system = files;
  EXPECT_EQ(drained().find("drained a (generation "), 0U);
}

TEST_F(DrainAlone, AStartThatLeftNoLockHereMayBeAtWorkElsewhere) {
  start_again_and_die();
  remove_locks_of_second_start();
  const auto failure = attempt([&] { (void)drained(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
}

/// A lock that another process holds until it is destroyed.
class HeldElsewhere {
 public:
  explicit HeldElsewhere(const std::string& path) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      const auto lock = fs::posix_file_system()->try_lock(path, "incarnation 2, rank 1, process 4711");
      (void)!::write(ready[1], "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    for (const int end : ready) ::close(end);
  }
  ~HeldElsewhere() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  HeldElsewhere(const HeldElsewhere&) = delete;
  HeldElsewhere& operator=(const HeldElsewhere&) = delete;

 private:
  pid_t child_ = -1;
};

TEST_F(DrainAlone, AnOutputThatWasNotFlushedIs) {
  for (const bool checkpoint_is_there : {false, true}) {
    const std::string before = checkpoint_is_there ? drained() : "nothing to drain: a (generation ";
    ASSERT_EQ(before.find("nothing to drain: a (generation "), 0U) << before;
    leave_output();
    const std::string words = drained();
    EXPECT_NE(words.find(checkpoint_is_there ? "drained 1 output; a (generation " : "and 1 output"), std::string::npos)
        << words;
    EXPECT_EQ(drained().find("nothing to drain: "), 0U);
  }
}

TEST_F(Scavenge, AnOutputThatWasNotFlushedIs) {
  (void)scavenge_store(store(1), options, world);
  (void)scavenge_store(store(0), options, world);
  leave_output();
  (void)scavenge_store(store(1), options, world);
  const std::string words = scavenge_store(store(0), options, world);
  EXPECT_NE(words.find("and 1 output"), std::string::npos) << words;
}

TEST_F(DrainAlone, WhoHoldsALockIsNamed) {
  start_again_and_die();
  world.clock = std::make_shared<faults::FakeClock>();
  const HeldElsewhere held(store(1) + "/lock.2.1");
  const auto failure = attempt([&] { (void)drained(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
  EXPECT_NE(failure->message.find("incarnation 2, rank 1, process 4711"), std::string::npos) << failure->message;
  EXPECT_NE(failure->message.find("on node "), std::string::npos) << failure->message;
}

}  // namespace
}  // namespace kedge::drain::scavenge_test
