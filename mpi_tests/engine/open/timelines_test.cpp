// Two histories that share names and numbers never mix, parents and generations are right, and what Newer::discard gave
// up never returns.
#include <gtest/gtest.h>

#include <cerrno>

#include "base/text.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::timelines_test {
namespace {

std::string node_directory(int node) { return compose("/nodes/node{}", node); }

/// Two timelines with one tag and one generation number: the second start is made from the state before the first.
struct Fork : TwoTimelines {
  explicit Fork(int ranks)
      : TwoTimelines(ranks, [](SimulatedJob& configured) {
          configured.options.redundancy.scheme = Scheme::single;  // a missing container is not rebuilt
        }) {}
};

TEST(Timelines, ForksShareTagAndGenerationAndDifferInTheCommitId) {
  Fork fork(4);
  const auto of_second = superblock_of(fork.job.disk, 3, "next");
  fork.job.disk.restore(fork.first);
  const auto of_first = superblock_of(fork.job.disk, 3, "next");
  EXPECT_EQ(of_first.commit.generation, of_second.commit.generation);
  EXPECT_EQ(of_first.commit.tag, of_second.commit.tag);
  EXPECT_EQ(of_first.commit.parent_id, of_second.commit.parent_id);
  EXPECT_NE(of_first.commit.id, of_second.commit.id);
}

TEST(Timelines, HalvesOfTwoTimelinesAreNeverCombined) {
  for (const int node : {0, 1}) {
    Fork fork(4);
    fork.job.disk.restore(fork.first, node_directory(node));  // the other node has the second timeline
    const Opened opened = reopen(fork.job);
    EXPECT_EQ(opened.tag, "base");
    EXPECT_EQ(opened.step, 1);
    EXPECT_TRUE(fork.job.logged("skipped next"));
    reopen(fork.job, latest, Newer::keep, {{"after", 40}});
    EXPECT_EQ(reopen(fork.job).step, 40);
  }
}

TEST(Timelines, EveryPatternOfContainersOfTwoTimelinesGivesOneOfThemOrTheirBase) {
  for (unsigned pattern = 0; pattern < 16; ++pattern) {
    Fork fork(4);
    for (int rank = 0; rank < 4; ++rank) {
      if ((pattern >> static_cast<unsigned>(rank) & 1U) == 0) continue;
      for (const std::string& path : container_files(fork.job.disk, rank)) fork.job.disk.restore(fork.first, path);
    }
    const Opened opened = reopen(fork.job);
    const int expected = pattern == 0 ? 30 : pattern == 15 ? 20 : 1;
    EXPECT_EQ(opened.step, expected) << "pattern " << pattern;
  }
}

TEST(Timelines, BothTimelinesWholeGiveOneWholeOne) {
  // Each rank has both: the first's container is added beside the second's.
  Fork fork(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (const std::string& path : container_files(fork.job.disk, rank)) {
      const auto& entry = fork.first.at(path);
      if (format::is_unsealed(std::span(entry.bytes).first(format::kSuperblockBytes))) continue;  // made ready only
      if (format::decode_superblock(entry.bytes, path).commit.tag != "next") continue;
      fork.job.disk.write_all(compose("{}/rank-{}.7.h5", path.substr(0, path.rfind('/')), rank), entry.bytes);
    }
  }
  const Opened opened = reopen(fork.job);
  EXPECT_EQ(opened.tag, "next");
  EXPECT_TRUE(opened.step == 20 || opened.step == 30) << opened.step;
  EXPECT_EQ(reopen(fork.job).step, opened.step);
}

TEST(Timelines, AStoreReplacedByAnOlderCopyGivesTheNewestCommitThatAllHave) {
  SimulatedJob job(4);
  job.options.redundancy.scheme = Scheme::single;  // nothing can be rebuilt
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const auto old = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"c", 3}});
  const auto newest_generation = superblock_of(job.disk, 0, "c").commit.generation;
  job.disk.restore(old, node_directory(1));
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"d", 4}}).tag, "b");
  EXPECT_GT(superblock_of(job.disk, 3, "d").commit.generation, newest_generation);
  EXPECT_EQ(superblock_of(job.disk, 3, "d").commit.parent_id, superblock_of(job.disk, 0, "d").commit.parent_id);
  EXPECT_EQ(reopen(job).step, 4);
}

TEST(Timelines, AnOlderCopyWithoutACommonCommitIsUnrecoverable) {
  SimulatedJob job(4);
  job.options.redundancy.scheme = Scheme::single;  // nothing can be rebuilt
  commit_steps(job, {{"a", 1}});
  const auto old = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}, {"c", 3}, {"d", 4}});
  job.disk.restore(old, node_directory(0));
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  EXPECT_TRUE(says(opened.failure->message, {"d (generation", "a (generation", "missing"})) << opened.failure->message;
}

TEST(Timelines, ContainersSwappedBetweenRanksAreMissingOnes) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const std::string first = container_of(job.disk, 0, "b");
  const std::string second = container_of(job.disk, 1, "b");
  const auto bytes = job.disk.read_all(first);
  job.disk.write_all(first, job.disk.read_all(second));
  job.disk.write_all(second, bytes);
  EXPECT_EQ(reopen(job).step, 1);
  EXPECT_TRUE(job.logged("it is the container of rank 1"));
}

TEST(Timelines, AContainerOfAnotherRunIsNotTaken) {
  SimulatedJob other(2);
  commit_steps(other, {{"a", 100}});
  SimulatedJob job(2);
  commit_steps(job, {{"a", 1}});
  ASSERT_NE(superblock_of(other.disk, 1, "a").commit.run_id, superblock_of(job.disk, 1, "a").commit.run_id);
  job.disk.write_all(container_of(job.disk, 1, "a"), other.disk.read_all(container_of(other.disk, 1, "a")));
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  EXPECT_TRUE(says(opened.failure->message, {"the container of rank 1", "another run"})) << opened.failure->message;
}

TEST(Timelines, StoresOfAnotherRunAreNotTakenAndNotOverwrittenBeforeANewCommit) {
  SimulatedJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto theirs = job.disk.snapshot();
  // Another prefix, the same run name and stores.
  job.options.persistent.path = "/another";
  job.disk.make_directories("/another", 0755);
  job.options.store.path = "/elsewhere/{node}";
  commit_steps(job, {{"x", 5}});
  job.options.store.path = "/nodes/{node}";
  const std::string their_store = run_directory_of(job.disk, "node0");
  expect_all_returned(job.start([&](RankScope& scope) { const Engine engine = scope.make_engine(); }));
  // Somebody put their containers into this run's store.
  std::string own_store;
  for (const auto& [path, entry] : job.disk.snapshot()) {
    if (path.starts_with("/nodes/node0/kedge-") && path.ends_with("/run") && !path.starts_with(their_store))
      own_store = path.substr(0, path.rfind('/'));
  }
  ASSERT_FALSE(own_store.empty());
  const auto planted = [&](int rank) { return compose("{}/rank-{}.5.h5", own_store, rank); };
  std::vector<std::vector<std::byte>> contents;
  for (int rank = 0; rank < 2; ++rank) {
    contents.push_back(job.disk.read_all(container_of(job.disk, rank, "a")));
    job.disk.write_all(planted(rank), contents.back());
  }
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("y");
    engine.abandon();
  }));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.disk.read_all(planted(rank)), contents.at(static_cast<std::size_t>(rank)));
  }
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  job.disk.remove_all("/elsewhere");
  commit_steps(job, {{"z", 6}, {"z", 7}});
  EXPECT_EQ(reopen(job).step, 7);
  std::size_t left = 0;
  for (const std::string& path : container_files(job.disk, 0)) left += path.starts_with(own_store) ? 1U : 0U;
  EXPECT_LE(left, 2U);
  for (const auto& [path, entry] : theirs) {
    const bool is_theirs = path.starts_with(their_store) && path.ends_with(".h5");
    EXPECT_TRUE(!is_theirs || job.disk.read_all(path) == entry.bytes) << path;
  }
}

// --- going back on purpose

class GoingBack : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    job.options.store.keep = GetParam();
    commit_steps(job, {{"a", 1}, {"b", 2}});
  }
  void expect_few_files(std::size_t at_most) const {
    for (int rank = 0; rank < 2; ++rank) EXPECT_LE(container_files(job.disk, rank).size(), at_most);
  }
  SimulatedJob job{2};
};
INSTANTIATE_TEST_SUITE_P(Keep, GoingBack, testing::Values(1U, 2U, 3U),
                         [](const auto& keep) { return compose("{}", keep.param); });

TEST_P(GoingBack, NewerKeepOffersTheNewerBranchUntilANewerCommitExists) {
  EXPECT_EQ(reopen(job, Before{"b"}).step, 1);
  EXPECT_EQ(reopen(job).step, 2);
  EXPECT_EQ(reopen(job, Before{"b"}, Newer::keep, {{"c", 3}}).step, 1);
  EXPECT_EQ(superblock_of(job.disk, 0, "c").commit.tag, "c");
  expect_few_files(GetParam() + 1);
  EXPECT_EQ(reopen(job).step, 3);
}

TEST_P(GoingBack, TheNewCommitHasTheOpenedOneAsParent) {
  const auto a = superblock_of(job.disk, 0, "a").commit.id;
  const auto b = superblock_of(job.disk, 0, "b");
  EXPECT_EQ(b.commit.parent_id, a);
  reopen(job, Before{"b"}, Newer::keep, {{"c", 3}});
  const auto c = superblock_of(job.disk, 1, "c");
  EXPECT_EQ(c.commit.parent_id, a);
  EXPECT_GT(c.commit.generation, b.commit.generation);
}

TEST_P(GoingBack, NewerDiscardNeverOffersTheNewerBranchAgain) {
  EXPECT_EQ(reopen(job, Before{"b"}, Newer::discard).step, 1);
  EXPECT_EQ(reopen(job).step, 1);
  EXPECT_TRUE(job.logged("it was discarded"));
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).step, 1);
  EXPECT_EQ(reopen(job).step, 3);
  EXPECT_EQ(reopen(job, Before{"c"}).step, 1);
  expect_few_files(GetParam() + 1);
}

TEST_P(GoingBack, ACrashWithinTheDiscardLeavesOneOfTheTwo) {
  const auto before = job.disk.snapshot();
  const auto open_only = [](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open(Before{"b"}, Newer::discard);
  };
  job.start(open_only);
  const auto operations = job.operations[0];
  bool kept = false;
  bool discarded = false;
  for (std::uint64_t n = 1; n <= operations; ++n) {
    job.disk.restore(before);
    job.disk.stop_world_after(0, n, n);
    const auto outcomes = job.start(open_only);
    const int step = reopen(job).step;
    EXPECT_TRUE(step == 1 || step == 2) << "operation " << n;
    kept = kept || step == 2;
    discarded = discarded || step == 1;
    EXPECT_EQ(reopen(job).step, step) << "operation " << n;
  }
  EXPECT_TRUE(kept);
  EXPECT_TRUE(discarded);
}

TEST_P(GoingBack, ACrashRightAfterTheDiscardStaysBack) {
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Before{"b"}, Newer::discard), "a");
    scope.communicator.barrier(Deadline::after(std::chrono::seconds(5)));
    if (scope.rank == 0) job.disk.stop_all(1);
    engine.close();
    engine.create("c");
  });
  for (const auto& outcome : outcomes) EXPECT_FALSE(outcome.returned());
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_P(GoingBack, TheOpenedOneIsNotOverwrittenBeforeTheNextCommitIsComplete) {
  for (const Newer newer : {Newer::keep, Newer::discard}) {
    for (const bool abandon : {true, false}) {
      const auto before = job.disk.snapshot();
      expect_all_returned(job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        EXPECT_EQ(engine.open(Before{"b"}, newer), "a");
        engine.close();
        engine.create("c");
        const std::vector<double> values(30'000, 3.0);
        engine.save("x", region(std::span(values)));
        if (abandon) {
          engine.abandon();
          engine.create("d");
          engine.abandon();
        }
      }));
      if (newer == Newer::keep) {
        EXPECT_EQ(reopen(job, Before{"b"}).step, 1);
      }
      EXPECT_EQ(reopen(job, Tag{"a"}).step, 1);
      EXPECT_EQ(reopen(job).step, newer == Newer::keep ? 2 : 1);
      job.disk.restore(before);
    }
  }
}

TEST_P(GoingBack, WithinOneStartTheOpenedOneIsNotOverwrittenEither) {
  for (const bool look_at_newest_first : {false, true}) {
    const Tag older = look_at_newest_first ? "a1" : "a2";
    const Tag newer = look_at_newest_first ? "b1" : "b2";
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, older, 10);
      commit_step(engine, scope.rank, newer, 11);
      if (look_at_newest_first) {
        EXPECT_EQ(engine.open(), newer);
        engine.close();
      }
      EXPECT_EQ(engine.open(Before{newer}), older);
      engine.close();
      engine.create("half");
      const std::vector<double> values(30'000, 3.0);
      engine.save("x", region(std::span(values)));
    }));
    EXPECT_EQ(reopen(job, Before{newer}).step, 10);
    EXPECT_EQ(reopen(job).step, 11);
  }
}

TEST_P(GoingBack, AgainAndAgainTheStoreStaysBounded) {
  for (int round = 3; round < 8; ++round) {
    const auto tag = compose("t{}", round);
    const Opened opened =
        reopen(job, Tag{"a"}, round % 2 == 0 ? Newer::discard : Newer::keep, {{"a", round}, {tag, round}});
    EXPECT_EQ(opened.step, round == 3 ? 1 : round - 1);
    expect_few_files(GetParam() + 2);
    EXPECT_EQ(reopen(job).step, round);
  }
}

TEST_P(GoingBack, ADiscardThatCannotBeRecordedFailsOnAllAndChangesNothing) {
  expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    scope.communicator.barrier(Deadline::after(std::chrono::seconds(5)));
    if (scope.rank == 0) {
      Volume read_only;
      read_only.write_errno = EROFS;
      job.disk.set_volume("/prefix", read_only);
    }
    scope.communicator.barrier(Deadline::after(std::chrono::seconds(5)));
    (void)engine.open(Before{"b"}, Newer::discard);
  }),
                    ErrorCode::io);
  job.disk.set_volume("/prefix", {});
  EXPECT_EQ(reopen(job).step, 2);
}

}  // namespace
}  // namespace kedge::faults::timelines_test
