// kedge drain and kedge scavenge where the number of ranks changed between starts: the newest checkpoint that can be
// recovered is flushed, whichever number of ranks saved it, and nothing else; what another number of ranks had only
// opened is flushed too, also if they rebuilt a part of it in other nodes' stores.
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <chrono>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "comm/group.hpp"
#include "drain/drain.hpp"
#include "drain/scavenge.hpp"
#include "format/on_disk.hpp"
#include "fs/tree.hpp"
#include "harness/simulated_job.hpp"
#include "harness/simulated_nodes.hpp"
#include "kedge/engine.hpp"
#include "kedge/testing/in_process_job.hpp"
#include "kedge/transport.hpp"

namespace kedge::drain::other_ranks_drain_test {
namespace {

void start(testing::InProcessJob& job, const testing::InProcessJob::Body& body) {
  for (const auto& outcome : job.start(body)) {
    if (outcome.exception == nullptr) continue;
    const auto failure = attempt([&] { std::rethrow_exception(outcome.exception); });
    ADD_FAILURE() << (failure ? to_string(*failure) : "died");
  }
}

/// A node for each rank; jobs of several numbers of ranks, one after the other.
class OtherRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kedge-other-ranks-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    options.store.path = directory + "/{node}";
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 0;
    options.redundancy.scheme = Scheme::xor_;
    options.log.level = LogLevel::off;
  }
  void TearDown() override { (void)fs::remove_tree(*files(), directory); }

  [[nodiscard]] fs::FileSystem* files() const { return world.file_system.get(); }
  [[nodiscard]] std::string node(int number) const { return directory + "/node" + std::to_string(number); }
  [[nodiscard]] std::string store(int number) const {
    return fs::join(node(number), files()->list(node(number)).at(0));
  }
  /// Whether a container is of a job of so many ranks.
  [[nodiscard]] bool is_of(const std::string& path, std::uint32_t ranks) const {
    std::vector<std::byte> first(format::kSuperblockBytes);
    const auto file = files()->open(path, fs::Access::read);
    if (file->status().size_bytes < first.size()) return false;
    file->read(0, first);
    std::uint32_t found = 0;
    (void)attempt([&] { found = format::decode_superblock(first, path).commit.world_size; });
    return found == ranks;
  }
  void lose(int number) const { (void)fs::remove_tree(*files(), node(number)); }

  /// A job that opens the newest checkpoint and makes one with this tag, unless it is empty.
  void run(int ranks, const Tag& tag, const Options& of_job) const {
    testing::InProcessJob job(ranks, of_job);
    start(job, [&](Engine& engine, Communicator& communicator) {
      if (engine.open()) engine.close();
      if (tag.empty()) return engine.finalize();
      const auto all = static_cast<std::uint64_t>(communicator.size());
      const std::uint64_t mine = 120 / all;
      const std::vector<double> state(mine, static_cast<double>(ranks));
      engine.create(tag);
      engine.save("state", {state.data(), DataType::float64, Shape{mine}},
                  Shard{{120}, {mine * static_cast<std::uint64_t>(communicator.rank())}});
      engine.commit();
      engine.finalize();
    });
  }
  void run(int ranks, const Tag& tag) const { run(ranks, tag, options); }
  /// Its checkpoint is lost with any of its nodes, and older ones are kept.
  void run_unprotected(int ranks, const Tag& tag) const {
    Options alone = options;
    alone.redundancy.every = 0;
    run(ranks, tag, alone);
  }

  [[nodiscard]] std::string drained() const {
    const comm::Group alone(single_process(), std::chrono::seconds(60));
    alone.communicator().connect(alone.deadline());
    return drain(alone, nullptr, options, world, false);
  }
  /// Node by node; what the last one says.
  [[nodiscard]] std::string scavenged(const std::vector<int>& of_nodes) const {
    std::string words;
    for (const int number : of_nodes) words = scavenge_store(store(number), options, world);
    return words;
  }
  /// What a job finds on the prefix when all stores are gone.
  void expect_on_prefix(const Tag& tag, double value) const {
    for (int number = 0; number < 6; ++number) lose(number);
    for (const int ranks : {3, 4, 1}) {
      Options of_job = options;
      of_job.redundancy.scheme = Scheme::automatic;
      testing::InProcessJob job(ranks, of_job);
      start(job, [&](Engine& engine, Communicator& /*communicator*/) {
        EXPECT_EQ(engine.open(), tag);
        std::vector<double> all(120);
        engine.load_all({Want{"state", mutable_region(std::span(all)), Shard{{120}, {0}}}});
        EXPECT_EQ(all, std::vector<double>(120, value));
        engine.close();
      });
      for (int number = 0; number < 6; ++number) lose(number);
    }
  }
  /// A node keeps what it has of other numbers of ranks.
  void lose_container_of_3_ranks(int number) const {
    std::size_t found = 0;
    for (const std::string& name : files()->list(store(number))) {
      const std::string path = fs::join(store(number), name);
      if (!name.starts_with("rank-") || !is_of(path, 3)) continue;
      files()->remove(path);
      ++found;
    }
    EXPECT_EQ(found, 1U);
  }
  /// Nothing can be rebuilt any more.
  void remove_parity() const {
    for (int number = 0; number < 6; ++number) {
      if (!files()->status(node(number))) continue;
      for (const std::string& name : files()->list(store(number))) {
        if (name.starts_with("parity-") || name.starts_with("set-")) files()->remove(fs::join(store(number), name));
      }
    }
  }
  static void expect_begins(const std::string& words, const std::string& begin) {
    EXPECT_EQ(words.find(begin), 0U) << words;
  }
  static void expect_says(const std::string& words, const std::string& part) {
    EXPECT_NE(words.find(part), std::string::npos) << words;
  }

  const faults::SimulatedNodes nodes{1};
  std::string directory;
  Options options;
  start::Environment world = start::Environment::system();
};

TEST_F(OtherRanks, TheNewestIsRebuiltAlthoughAnOlderOneIsWhole) {
  options.store.keep = 2;
  run(4, "a");
  run(3, "b");
  lose_container_of_3_ranks(1);
  expect_begins(drained(), "drained b (generation ");
  expect_on_prefix("b", 3);
}

TEST_F(OtherRanks, AnOlderOneOfMoreRanksIfTheNewestIsLost) {
  run(4, "a");
  run_unprotected(3, "b");
  lose(1);
  const std::string words = drained();
  expect_begins(words, "drained a (generation ");
  expect_says(words, " of 4 ranks, ");
  expect_says(words, "; the stores keep what they have of generation ");
  expect_begins(drained(), "nothing to drain: a (generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, AnOlderOneOfFewerRanksIfTheNewestIsLost) {
  run(3, "a");
  run_unprotected(4, "b");
  lose(1);
  expect_begins(drained(), "drained a (generation ");
  expect_on_prefix("a", 3);
}

TEST_F(OtherRanks, OneThatIsOlderThanThatIsNotFlushed) {
  options.store.keep = 3;
  run(3, "z");
  run(4, "a");
  run_unprotected(3, "b");
  lose(1);
  options.persistent.every = 100;
  expect_begins(drained(), "drained a (generation ");
  for (const std::string& name : files()->list(options.persistent.path)) {
    EXPECT_FALSE(name.starts_with("z.")) << "3 ranks could recover it, and 4 ranks a newer one";
  }
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, WhatIsOnThePrefixIfEverythingNewerIsLost) {
  run(4, "a");
  expect_begins(drained(), "drained a (generation ");
  run_unprotected(3, "b");
  lose(1);
  const std::string words = drained();
  expect_begins(words, "nothing to drain: a (generation ");
  expect_says(words, " is the newest that can be recovered, and is on the prefix");
}

TEST_F(OtherRanks, WhyNoneCanBeRecovered) {
  run(4, "a");
  run_unprotected(3, "b");
  lose(1);
  lose(3);
  const auto failure = attempt([&] { (void)drained(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::unrecoverable);
  expect_says(failure->message, "b (generation ");
  expect_says(failure->message, "a (generation ");
  EXPECT_EQ(failure->message.find("start it with"), std::string::npos) << failure->message;
}

TEST_F(OtherRanks, ScavengedNodeByNode) {
  run(4, "a");
  run_unprotected(3, "b");
  lose(1);
  expect_says(scavenged({0, 2, 3}), " of 3 containers have been copied; waiting for the remaining nodes");
  const std::string words = finish_scavenge(options, world, false);
  expect_begins(words, "flushed a (generation ");
  expect_says(words, "; the copies are kept, because they have parts of generation ");
  expect_begins(finish_scavenge(options, world, false), "a (generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, ScavengedWhereAnOlderOneIsWhole) {
  run(4, "a");
  run_unprotected(3, "b");
  lose_container_of_3_ranks(1);
  expect_says(scavenged({0, 1, 2}), " of 3 containers have been copied; waiting for the remaining nodes");
  const std::string words = scavenged({3});
  expect_says(words, "; flushed a (generation ");
  expect_says(words, "; the copies are kept, because they have parts of generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, OnlyOpenedByFewerRanks) {
  run(4, "a");
  run(3, "");
  expect_begins(drained(), "drained a (generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, OnlyOpenedByMoreRanks) {
  run(4, "a");
  run(6, "");
  expect_begins(drained(), "drained a (generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, RebuiltByOthersInAnotherNodesStore) {
  run(4, "a");
  run(3, "");  // which does not see node 3
  lose(3);
  remove_parity();
  expect_begins(drained(), "drained a (generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, RebuiltByMoreRanks) {
  run(4, "a");
  lose(1);
  run(6, "");
  remove_parity();
  expect_begins(drained(), "drained a (generation ");
  expect_on_prefix("a", 4);
}

TEST_F(OtherRanks, ScavengedWhereOthersRebuiltIt) {
  run(4, "a");
  run(3, "");
  lose(3);
  remove_parity();
  expect_says(scavenged({0, 1}), " of 4 containers have been copied");
  expect_says(scavenged({2}), "; flushed a (generation ");
  expect_on_prefix("a", 4);
}

}  // namespace
}  // namespace kedge::drain::other_ranks_drain_test
