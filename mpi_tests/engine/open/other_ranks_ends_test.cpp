// Checkpoints of another number of ranks beside all else that an engine does: newer commits, outputs, the end of a job,
// other runs' checkpoints, several engines, and lists of variables that have changed.
#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/elastic_fixture.hpp"
#include "harness/engine_checks.hpp"

namespace kedge::faults::other_ranks_ends_test {
namespace {

class OtherRanksEnds : public ElasticFixture {};

TEST_F(OtherRanksEnds, DiscardedOnesOfOtherRanksNeverComeBack) {
  PersistentJob job(4);
  job.options.store.keep = 3;
  job.nodes.assign(8, "node0");
  save(job, 4, "s1", 1);
  save(job, 3, "s2", 2);
  save(job, 5, "s3", 3);
  start(job, 2, [&](Engine& engine, RankScope&) {
    ASSERT_EQ(engine.open(Tag("s1"), Newer::discard), "s1");
    engine.close();
    engine.finalize();
  });
  expect_restored(job, 5, 1, 4);
  expect_restored(job, 3, 1, 4);
  lose_stores(job, {0});
  expect_restored(job, 3, 1, 4);
}

TEST_F(OtherRanksEnds, WithStoresRemovedAtTheEnd) {
  for (const OnExit on_exit : {OnExit::keep, OnExit::remove_if_persistent, OnExit::remove}) {
    for (const std::uint64_t every : {0U, 1U}) {
      for (const int commits : {0, 1}) {
        PersistentJob job(4);
        job.options.persistent.every = every;
        job.nodes.assign(8, "node0");
        save(job, 4, "s1", 1);
        job.options.store.on_exit = on_exit;
        start(job, 3, [&](Engine& engine, RankScope& scope) {
          ElasticProgram program(scope.rank, scope.ranks);
          ASSERT_TRUE(engine.restore(program.state()));
          if (commits != 0) commit(engine, scope, "s2", 2);
          engine.finalize();
        });
        SCOPED_TRACE(compose("{} {} {}", static_cast<int>(on_exit), every, commits));
        if (on_exit != OnExit::remove || every != 0) {
          expect_restored(job, 2, commits == 0 ? 1 : 2, commits == 0 ? 4 : 3);
        }
      }
    }
  }
}

TEST_F(OtherRanksEnds, OutputsOfOtherRanksAreReadAndStayUntilTheyAreFlushed) {
  for (const bool reads : {false, true}) {
    for (const OnExit on_exit : {OnExit::keep, OnExit::remove_if_persistent, OnExit::remove}) {
      PersistentJob job(4);
      job.nodes.assign(8, "node0");
      start(job, 4, [&](Engine& engine, RankScope& scope) {
        commit(engine, scope, "s1", 1);
        once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
        write_output(engine, scope.rank, "p1", 7);
      });
      job.disk.set_volume("/prefix", {});
      job.options.store.on_exit = on_exit;
      start(job, 3, [&](Engine& engine, RankScope& scope) {
        ElasticProgram program(scope.rank, scope.ranks);
        ASSERT_EQ(engine.restore(program.state()), "s1");
        if (reads) {
          ASSERT_EQ(engine.open(Tag("p1")), "p1");
          const auto from = static_cast<std::uint32_t>(scope.rank + 1);
          std::vector<double> plot(100 + from);
          engine.load_all({Want{"plot", mutable_region(std::span(plot)), {}, LogicalRank{from}}});
          engine.close();
          EXPECT_EQ(plot, std::vector<double>(plot.size(), 7));
        }
        commit(engine, scope, "s2", 2);
        commit(engine, scope, "s3", 3);
        write_output(engine, scope.rank, "p2", 8);
        engine.finalize();
      });
      job.options.store.on_exit = OnExit::keep;
      start(job, 4, [&](Engine& engine, RankScope&) {
        EXPECT_EQ(engine.open(Tag("p1")), "p1");
        engine.close();
        engine.finalize();
      });
      EXPECT_THAT(tags(job), testing::IsSupersetOf({"p1", "p2", "s3"}));
      lose_stores(job, {0});
      expect_restored(job, 5, 3, 3);
      start(job, 4, [&](Engine& engine, RankScope& scope) {
        ASSERT_EQ(engine.open(Tag("p1")), "p1");
        std::vector<double> plot(100 + static_cast<std::size_t>(scope.rank));
        EXPECT_TRUE(engine.load("plot", mutable_region(std::span(plot))));
        engine.close();
        EXPECT_EQ(plot, std::vector<double>(plot.size(), 7));
      });
    }
  }
}

TEST_F(OtherRanksEnds, AnotherRunsCheckpoint) {
  for (const int now : {1, 3, 9}) {
    PersistentJob job(4);
    job.options.run = "first";
    save(job, 4, "s1", 1);
    job.options.run = "second";
    job.nodes.assign(9, "other");
    const Source source{"/prefix", "first", "s1"};
    expect_restored(job, now, 1, 4, source);
    start(job, now, [&](Engine& engine, RankScope& scope) {
      ElasticProgram program(scope.rank, scope.ranks);
      ASSERT_TRUE(engine.restore(program.state(), source));
      commit(engine, scope, "s2", 2);
      engine.finalize();
    });
    expect_restored(job, 4, 2, now);
  }
}

/// The older one is opened, on all ranks, whichever of them has read the damage.
TEST_F(OtherRanksEnds, ADamagedOneOfAnotherRunStepsBack) {
  for (const std::uint32_t rank : {0U, 3U}) {
    PersistentJob job(4);
    job.options.run = "first";
    save(job, 4, "s1", 1);
    const auto older = job.disk.snapshot();
    save(job, 4, "s1", 2);
    const std::string path = container_of(job, "s1", rank);
    const std::uint64_t size = job.disk.read_all(path).size();
    for (std::uint64_t at = 4096; at < size; at += 512) job.disk.flip_bit(path, at);
    job.options.run = "second";
    job.nodes.assign(9, "other");
    expect_restored(job, 3, 1, 4, Source{"/prefix", "first", "s1"});
  }
}

TEST_F(OtherRanksEnds, TwoEnginesOneAfterTheOther) {
  PersistentJob job(4);
  job.nodes.assign(8, "node0");
  save(job, 4, "s1", 1);
  job.options.open.chained = true;
  ElasticProgram::Found first;
  ElasticProgram::Found second;
  ElasticProgram::Found third;
  job.ranks = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    {
      Engine engine = scope.make_engine();
      expect_restored(engine, scope, 1, 4, first);
    }
    Engine engine = scope.make_engine();
    expect_restored(engine, scope, 1, 4, second);
    commit(engine, scope, "s2", 2);
    expect_restored(engine, scope, 1, 4, third, Before{"s2"});
  }));
  for (const auto* found : {&first, &second, &third}) ElasticProgram::expect_whole(*found, 1, 4);
}

TEST_F(OtherRanksEnds, VariablesThatWereAddedAreNamedAndThoseThatAreGoneAreNot) {
  PersistentJob job(4);
  job.nodes.assign(8, "node0");
  start(job, 4, [&](Engine& engine, RankScope&) {
    int kept = 7;
    int gone = 8;
    State state;
    state.add("kept", kept, Replicated{}).add("gone", gone, Replicated{});
    engine.checkpoint("s1", state);
  });
  start(job, 3, [&](Engine& engine, RankScope&) {
    int kept = 0;
    State state;
    state.add("kept", kept, Replicated{});
    EXPECT_EQ(engine.restore(state), "s1");
    EXPECT_EQ(kept, 7);
  });
  // On one rank alone.
  for (const bool on_all : {true, false}) {
    job.ranks = 3;
    const Failure failure = expect_all_failed(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      int kept = 0;
      int added = 0;
      State state;
      state.add("kept", kept, Replicated{});
      if (on_all || scope.rank == 1) state.add("added", added, Replicated{});
      (void)engine.restore(state);
    }),
                                              ErrorCode::mismatch);
    EXPECT_TRUE(says(failure.message, {"'added'"})) << failure.message;
  }
  // A rank without variables takes part.
  start(job, 3, [&](Engine& engine, RankScope& scope) {
    int kept = 0;
    State state;
    if (scope.rank != 1) state.add("kept", kept, Replicated{});
    EXPECT_EQ(engine.restore(state), "s1");
    EXPECT_EQ(kept, scope.rank == 1 ? 0 : 7);
  });
}

TEST_F(OtherRanksEnds, AFunctionThatThrowsOnOneRankFailsTheRestoreOnAll) {
  PersistentJob job(4);
  job.nodes.assign(8, "node0");
  save(job, 4, "s1", 1);
  for (const std::uint32_t at : {0U, 3U}) {
    job.ranks = 3;
    (void)expect_all_failed(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      std::string own;
      State state;
      state.add("own", own, PerRank{[at](LogicalRank saved_by, std::span<const std::byte>) {
                  if (saved_by.value == at) throw std::runtime_error("no");
                }});
      (void)engine.restore(state);
    }),
                            ErrorCode::invalid_argument);
  }
  expect_restored(job, 3, 1, 4);
}

/// Damage in one rank's own bytes is found before any function has got bytes of that checkpoint.
TEST_F(OtherRanksEnds, EachRanksOwnBytesComeOnceAlsoWhereACheckpointTurnsOutDamaged) {
  PersistentJob job(4);
  const auto commit_own = [&](const Tag& tag) {
    start(job, 4, [&](Engine& engine, RankScope& scope) {
      std::vector<char> own(5000, static_cast<char>('a' + scope.rank));
      State state;
      state.add("own", own);
      engine.checkpoint(tag, state);
      engine.finalize();
    });
  };
  commit_own("s1");
  commit_own("s2");
  const std::string path = container_of(job, "s2", 3);
  const auto bytes = job.disk.read_all(path);
  const std::vector<std::byte> looked_for(1000, std::byte{'d'});
  const auto at = std::search(bytes.begin(), bytes.end(), looked_for.begin(), looked_for.end());
  ASSERT_NE(at, bytes.end());
  job.disk.flip_bit(path, static_cast<std::uint64_t>(at - bytes.begin()) + 100);
  lose_stores(job, {0, 1, 2, 3});
  std::mutex mutex;
  std::vector<std::uint32_t> got;
  start(job, 3, [&](Engine& engine, RankScope&) {
    std::vector<char> own;
    State state;
    state.add("own", own, PerRank{[&](LogicalRank saved_by, std::span<const std::byte>) {
                const std::lock_guard guard(mutex);
                got.push_back(saved_by.value);
              }});
    EXPECT_EQ(engine.restore(state), "s1");
  });
  EXPECT_THAT(got, testing::UnorderedElementsAre(0U, 1U, 2U, 3U));
}

}  // namespace
}  // namespace kedge::faults::other_ranks_ends_test
