// Checkpoints that another number of ranks saved: where their files lie, which ranks get what of them, and what happens
// to the files.
#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/elastic_program.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::other_ranks_test {
namespace {

class OtherRanks : public FlushFixture {
 protected:
  static void save(SimulatedJob& job, int ranks, const Tag& tag, int step) {
    job.ranks = ranks;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      ElasticProgram program(scope.rank, scope.ranks);
      (void)engine.restore(program.state());
      program.set(step);
      engine.checkpoint(tag, program.state());
      engine.finalize();
    }));
  }

  /// One start that restores `step`, as `saved_by` ranks saved it, and ends.
  static void expect_restored(SimulatedJob& job, int ranks, int step, int saved_by) {
    job.ranks = ranks;
    ElasticProgram::Found found;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      ElasticProgram program(scope.rank, scope.ranks);
      ASSERT_TRUE(engine.restore(program.state()));
      program.expect(step, saved_by, found);
      engine.finalize();
    }));
    ElasticProgram::expect_whole(found, step, saved_by);
  }

  static std::set<std::string> containers(const SimulatedJob& job, int ranks) {
    std::set<std::string> files;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const auto& [path, superblock] : superblocks(job.disk, rank)) {
        if (superblock.commit.world_size == static_cast<std::uint32_t>(ranks)) files.insert(path);
      }
    }
    return files;
  }
};

struct Sizes {
  int saved_by = 0;
  int now = 0;
};

class OtherRanksSizes : public OtherRanks, public testing::WithParamInterface<Sizes> {};

TEST_P(OtherRanksSizes, FromTheStoresAsTheyLie) {
  const auto [saved_by, now] = GetParam();
  PersistentJob job(saved_by);
  job.options.persistent.every = 0;
  job.nodes.assign(16, "node0");
  save(job, saved_by, "a", 1);
  const std::set<std::string> before = containers(job, saved_by);
  ASSERT_EQ(before.size(), static_cast<std::size_t>(saved_by));
  for (int again = 0; again < 2; ++again) {
    expect_restored(job, now, 1, saved_by);
    EXPECT_EQ(containers(job, saved_by), before) << "no file of the commit may go or move";
  }
  expect_restored(job, saved_by, 1, saved_by);
}

TEST_P(OtherRanksSizes, FromThePrefix) {
  const auto [saved_by, now] = GetParam();
  PersistentJob job(saved_by);
  save(job, saved_by, "a", 1);
  lose_stores(job, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_restored(job, now, 1, saved_by);
  EXPECT_TRUE(containers(job, saved_by).empty()) << "nothing is fetched";
}

TEST_P(OtherRanksSizes, FromStoresAndPrefixTogether) {
  const auto [saved_by, now] = GetParam();
  PersistentJob job(saved_by);
  job.options.redundancy.scheme = Scheme::single;
  save(job, saved_by, "a", 1);
  lose_stores(job, {0});
  expect_restored(job, now, 1, saved_by);
}

TEST_P(OtherRanksSizes, ThenOnAndBackAgain) {
  const auto [saved_by, now] = GetParam();
  PersistentJob job(saved_by);
  job.nodes.assign(16, "node0");
  save(job, saved_by, "a", 1);
  save(job, now, "b", 2);
  expect_restored(job, saved_by, 2, now);
  save(job, saved_by, "c", 3);
  expect_restored(job, now, 3, saved_by);
}

INSTANTIATE_TEST_SUITE_P(All, OtherRanksSizes,
                         testing::Values(Sizes{4, 3}, Sizes{4, 1}, Sizes{1, 4}, Sizes{3, 5}, Sizes{5, 8}, Sizes{8, 6},
                                         Sizes{7, 2}),
                         [](const auto& test) { return compose("{}to{}", test.param.saved_by, test.param.now); });

/// With a node lost, its containers are rebuilt where the rest of their sets is.
TEST_F(OtherRanks, ALostNodeIsRebuiltByFewerRanks) {
  for (const Scheme scheme : {Scheme::partner, Scheme::xor_, Scheme::rs}) {
    for (const int lost : {0, 1, 3}) {
      PersistentJob job(4);
      job.options.persistent.every = 0;
      job.options.redundancy.scheme = scheme;
      save(job, 4, "a", 1);
      lose_stores(job, {lost});
      std::vector<std::string> left;
      for (int node = 0; node < 4; ++node) {
        if (node != lost) left.push_back(compose("node{}", node));
      }
      job.nodes = left;
      expect_restored(job, 3, 1, 4);
      EXPECT_TRUE(job.logged("3 containers in place, 1 rebuilt"));
      expect_restored(job, 3, 1, 4);  // and it stays, whoever is lost next
      job.nodes.clear();
      expect_restored(job, 4, 1, 4);
    }
  }
}

TEST_F(OtherRanks, RefusedWhereTheOptionSaysSo) {
  PersistentJob job(4);
  save(job, 4, "a", 1);
  job.options.open.other_ranks = kedge::OtherRanks::refuse;
  job.ranks = 3;
  const Failure failure = expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open();
  }),
                                            ErrorCode::unrecoverable);
  EXPECT_TRUE(says(failure.message, {"saved by 4 ranks and this job has 3"})) << failure.message;
}

TEST_F(OtherRanks, AProgramThatKnowsNothingOfThemIsToldWhatToDo) {
  PersistentJob job(4);
  commit_steps(job, {{"a", 1}});
  job.ranks = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    ASSERT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.info().world_size, 4U);
    EXPECT_EQ(code_of([&] { (void)engine.regions(); }), ErrorCode::mismatch);
    EXPECT_EQ(code_of_status(engine.load("x", {})), ErrorCode::mismatch);
    EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::mismatch);
  }));
}

TEST_F(OtherRanks, AStateThatIsEachRanksOwnIsRefusedBeforeAnythingIsLoaded) {
  PersistentJob job(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    int mine = scope.rank;
    int same = 7;
    State state;
    state.add("mine", mine).add("same", same);
    engine.checkpoint("a", state);
    engine.finalize();
  }));
  job.ranks = 2;
  const Failure failure = expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    int mine = -1;
    int same = -1;
    State state;
    state.add("mine", mine).add("same", same, Replicated{});
    try {
      (void)engine.restore(state);
    } catch (const Error&) {
      EXPECT_EQ(same, -1);
      throw;
    }
  }),
                                            ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"a was saved by 4 ranks and this job has 2", "'mine'", "kedge::PerRank"}))
      << failure.message;
  EXPECT_FALSE(says(failure.message, {"'same'"})) << "it was saved alike, and is Replicated now";
}

TEST_F(OtherRanks, WaitForALevelThatOnlyTheOthersCouldReachIsRefused) {
  PersistentJob job(4);
  job.options.persistent.every = 0;
  job.options.schedule.every = 1000;
  job.nodes.assign(8, "node0");
  save(job, 4, "a", 1);
  job.ranks = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    ElasticProgram program(scope.rank, scope.ranks);
    ASSERT_TRUE(engine.restore(program.state()));
    EXPECT_EQ(code_of([&] { engine.wait("a", Level::persistent); }), ErrorCode::invalid_argument);
    EXPECT_EQ(engine.level("a"), Level::local);
    for (int call = 0; call < 2; ++call) EXPECT_TRUE(engine.need_checkpoint()) << "the next one is due";
    program.set(2);
    engine.checkpoint("b", program.state());
    EXPECT_FALSE(engine.need_checkpoint());
    engine.finalize();
  }));
}

/// The prefix lacks one container, which the first three ranks would not look at.
TEST_F(OtherRanks, TheStoresStayWhereThePrefixIsNotWhole) {
  PersistentJob job(4);
  job.nodes.assign(8, "node0");
  save(job, 4, "a", 1);
  job.disk.remove_all(container_of(job, "a", 3));
  job.options.store.on_exit = OnExit::remove_if_persistent;
  expect_restored(job, 3, 1, 4);
  EXPECT_EQ(containers(job, 4).size(), 4U);
  expect_restored(job, 4, 1, 4);
}

}  // namespace
}  // namespace kedge::faults::other_ranks_test
