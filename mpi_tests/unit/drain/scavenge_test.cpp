// kedge drain by one process and kedge scavenge node by node: called twice, at the same time, with a lost node, a
// damaged copy, while a job runs; a job that died or ended later keeps nobody out, several runs of one prefix are all
// drained, and outputs of another number of ranks too.
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
#include "format/on_disk.hpp"
#include "fs/tree.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/simulated_job.hpp"
#include "harness/simulated_nodes.hpp"
#include "kedge/engine.hpp"
#include "kedge/testing/in_process_job.hpp"
#include "kedge/transport.hpp"

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

/// Two nodes with a rank each, whose job committed "a" and flushed nothing.
class Scavenge : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kedge-scavenge-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    options.store.path = directory + "/{node}";
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 0;
    options.log.level = LogLevel::off;
    testing::InProcessJob job(2, options);
    for (const auto& outcome : job.start([](Engine&engine, Communicator& /*communicator*/) {
           const std::vector<double> state(100, 7.0);
           engine.create("a");
           engine.save("state", {state.data(), DataType::float64, Shape{state.size()}});
           engine.commit();
         })) {
      ASSERT_TRUE(outcome.returned());
    }
  }
  void TearDown() override { (void)fs::remove_tree(*world.file_system, directory); }

  [[nodiscard]] std::string store(int node) const {
    const std::string root = directory + "/node" + std::to_string(node);
    return fs::join(root, world.file_system->list(root).at(0));
  }

  /// The job, once more; each rank ends as `work` says.
  void start_again(const std::function<void(Engine&)>& work) const {
    testing::InProcessJob job(2, options);
    for (const auto& outcome : job.start([&](Engine&engine, Communicator& /*communicator*/) { work(engine); })) {
      ASSERT_TRUE(outcome.returned());
    }
  }
  /// An output of a job that died while it was flushed: as late as possible, so that it was committed.
  void leave_output() const {
    const std::size_t before = flushed_plots();
    for (std::uint64_t before_end = 1; before_end < 100; ++before_end) {
      std::uint64_t end = 0;
      for (const bool dies : {false, true}) {
        testing::InProcessJob job(2, options);
        if (dies) job.stop_at(1, end - before_end);
        (void)job.start([](Engine& engine, Communicator& /*communicator*/) {
          ASSERT_EQ(engine.open(), "a");
          engine.close();
          engine.create_output("plot");
          const std::vector<double> plot(50, 1.0);
          engine.save("plot", {plot.data(), DataType::float64, Shape{plot.size()}});
          engine.commit();
        });
        if (!dies) end = job.events().at(1);
      }
      if (flushed_plots() < before + 2 * before_end) return;
    }
    FAIL() << "each output was flushed";
  }
  [[nodiscard]] std::size_t flushed_plots() const {
    std::size_t found = 0;
    for (const std::string& name : world.file_system->list(options.persistent.path)) {
      const std::string plot = fs::join(options.persistent.path, name);
      if (name.starts_with("plot.") && world.file_system->status(plot + "/checkpoint.h5")) ++found;
    }
    return found;
  }
  /// Locks stay, as of a process that was killed.
  void start_again_and_die() const {
    start_again([](Engine& engine) { ASSERT_EQ(engine.open(), "a"); });
  }
  /// As if it had worked on other nodes.
  void remove_locks_of_second_start() const {
    for (const int node : {0, 1}) {
      const std::string lock = store(node) + "/lock.2." + std::to_string(node);
      ASSERT_TRUE(world.file_system->status(lock)) << lock;
      world.file_system->remove(lock);
    }
  }

  const faults::SimulatedNodes nodes{1};
  std::string directory;
  Options options;
  start::Environment world = start::Environment::system();
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

/// One process sees both nodes: a drain without messages between processes.
class DrainAlone : public Scavenge {
 protected:
  [[nodiscard]] std::string drained() const {
    const comm::Group alone(single_process(), std::chrono::seconds(60));
    alone.communicator().connect(alone.deadline());
    return drain(alone, nullptr, options, world, false);
  }
};

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

/// The job went on with fewer ranks than made the output.
class AfterFewerRanks : public DrainAlone {
 protected:
  void leave_output_and_go_on_with_one_rank(bool with_checkpoint) {
    (void)drained();
    leave_output();
    testing::InProcessJob job(1, options);
    for (const auto& outcome : job.start([&](Engine&engine, Communicator& /*communicator*/) {
           if (with_checkpoint) {
             engine.create("b");
             engine.commit();
             engine.create("c");
             const std::vector<double> state(100000, 7.0);
             engine.save("state", {state.data(), DataType::float64, Shape{state.size()}});
             engine.commit();
           }
           engine.finalize();
         })) {
      ASSERT_TRUE(outcome.returned());
    }
    plots_ = flushed_plots();
  }
  /// In what only the checksums of the data show.
  void damage_containers_of_one_rank() const {
    fs::FileSystem& files = *world.file_system;
    std::vector<std::byte> first(format::kSuperblockBytes);
    std::size_t found = 0;
    for (const std::string& name : files.list(store(0))) {
      const std::string path = fs::join(store(0), name);
      if (!name.starts_with("rank-")) continue;
      const auto file = files.open(path, fs::Access::read_write);
      if (file->status().size_bytes <= first.size()) continue;
      file->read(0, first);
      std::uint32_t world_size = 0;
      (void)attempt([&] { world_size = format::decode(first, path).commit.world_size; });
      if (world_size != 1) continue;
      ++found;
      std::vector<std::byte> middle(1);
      const std::uint64_t at = file->status().size_bytes / 2;
      file->read(at, middle);
      middle[0] ^= std::byte{1};
      file->write(at, middle);
    }
    ASSERT_GT(found, 0U);
  }
  void expect_flushed(const std::string& words, const std::vector<std::string>& parts) const {
    for (const std::string& part : parts) EXPECT_NE(words.find(part), std::string::npos) << words;
    EXPECT_EQ(flushed_plots(), plots_ + 1);
  }

 private:
  std::size_t plots_ = 0;
};

TEST_F(AfterFewerRanks, DrainTakesTheCheckpointAndTheOutputsOfTheOthers) {
  leave_output_and_go_on_with_one_rank(true);
  expect_flushed(drained(), {"drained c (generation ", "; and 1 output of other numbers of ranks"});
  EXPECT_EQ(drained().find("nothing to drain: c (generation "), 0U);
}

TEST_F(AfterFewerRanks, DrainTakesOutputsAlone) {
  leave_output_and_go_on_with_one_rank(false);
  expect_flushed(drained(), {"drained 1 output; a (generation "});
  EXPECT_EQ(drained().find("nothing to drain: a (generation "), 0U);
}

TEST_F(AfterFewerRanks, DrainTakesOutputsAlthoughTheCheckpointIsDamaged) {
  leave_output_and_go_on_with_one_rank(true);
  damage_containers_of_one_rank();
  expect_flushed(drained(), {"nothing to drain: a (generation ", " is the newest that can be recovered",
                             "; and 1 output of other numbers of ranks"});
}

TEST_F(AfterFewerRanks, ScavengeTakesOutputsAlthoughTheCheckpointIsDamaged) {
  leave_output_and_go_on_with_one_rank(true);
  damage_containers_of_one_rank();
  expect_flushed(scavenge_store(store(0), options, world),
                 {"a (generation ", " is the newest that can be recovered", "; and 1 output", "the copies are kept"});
}

TEST_F(AfterFewerRanks, ScavengeTakesThemToo) {
  leave_output_and_go_on_with_one_rank(true);
  expect_flushed(scavenge_store(store(0), options, world), {"flushed c (generation ", "; and 1 output"});
}

TEST_F(AfterFewerRanks, ScavengeKeepsTheCopiesOfOutputsThatAreNotWhole) {
  options.redundancy.every = 0;
  leave_output_and_go_on_with_one_rank(true);
  const std::string first = scavenge_store(store(0), options, world);
  EXPECT_NE(first.find("flushed c (generation "), std::string::npos) << first;
  EXPECT_NE(first.find("; the copies are kept, because they have parts of incomplete outputs"), std::string::npos);
  const std::string second = scavenge_store(store(1), options, world);
  expect_flushed(second, {"c (generation ", "is already on the prefix; and 1 output"});
  EXPECT_EQ(second.find("; the copies are kept"), std::string::npos) << second;
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
