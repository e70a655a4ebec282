// What survives of a checkpoint of another number of ranks: its level, whom it outlives, deaths while it is restored,
// and stores without room.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/elastic_fixture.hpp"
#include "harness/engine_checks.hpp"
#include "harness/full_test.hpp"

namespace kedge::faults::other_ranks_levels_test {
namespace {

class OtherRanksLevels : public ElasticFixture {};

/// As with an equal number of ranks: what survives the loss of a node is not given up for what does not.
TEST_F(OtherRanksLevels, AProtectedOneStaysUntilANewerOneIsProtected) {
  for (const int now : {4, 6, 8}) {
    PersistentJob job(4);
    job.options.persistent.every = 0;
    job.options.redundancy.scheme = Scheme::xor_;
    job.nodes = {"node0", "node1", "node2", "node3"};
    save(job, 4, "s1", 1);
    job.options.redundancy.every = 0;
    job.nodes = {"node0", "node1", "node2", "node3", "node0", "node1", "node2", "node3"};
    save(job, now, "s2", 2);
    save(job, now, "s3", 3);
    lose_stores(job, {0});
    SCOPED_TRACE(now);
    expect_restored(job, now, 1, 4);
  }
}

/// Protected where no node has two members of a set, now that the containers lie where they do.
TEST_F(OtherRanksLevels, TheLevelSaysWhatSurvivesTheLossOfANode) {
  struct Case {
    int saved_by;
    int now;
    int nodes_now;
    Level level;
  };
  for (const Case& tested : {Case{8, 4, 4, Level::protected_}, Case{4, 8, 4, Level::protected_},
                             Case{8, 5, 4, Level::protected_}, Case{8, 3, 3, Level::local}}) {
    PersistentJob job(tested.saved_by);
    job.options.persistent.every = 0;
    job.options.redundancy.scheme = Scheme::xor_;
    job.options.redundancy.set_size = 4;
    const auto place = [&](int nodes) {
      job.nodes.clear();
      for (int rank = 0; rank < 8; ++rank) job.nodes.push_back(compose("node{}", rank % nodes));
    };
    place(4);
    save(job, tested.saved_by, "s1", 1);
    place(tested.nodes_now);
    SCOPED_TRACE(compose("{} to {}", tested.saved_by, tested.now));
    if (tested.level == Level::local) expect_restored(job, tested.now, 1, tested.saved_by);  // rebuilds
    start(job, tested.now, [&](Engine& engine, RankScope& scope) {
      ElasticProgram program(scope.rank, scope.ranks);
      ASSERT_TRUE(engine.restore(program.state()));
      EXPECT_EQ(engine.level("s1"), tested.level);
      const auto code = code_of([&] { engine.wait("s1", Level::protected_); });
      EXPECT_EQ(code, tested.level == Level::protected_ ? std::nullopt : std::optional(ErrorCode::invalid_argument));
      EXPECT_TRUE(engine.need_checkpoint()) << "the next one is due";
    });
    if (tested.level != Level::protected_) continue;
    lose_stores(job, {1});
    expect_restored(job, tested.now, 1, tested.saved_by);
  }
}

/// A container on one node and its member's parity on another: the set needs them together. What only the set could
/// give comes from the prefix then.
TEST_F(OtherRanksLevels, ParityApartFromItsMembersContainerIsNotUsed) {
  PersistentJob job(4);
  job.options.redundancy.scheme = Scheme::xor_;
  save(job, 4, "s1", 1);
  job.options.redundancy.every = 0;
  job.nodes = {"node0", "node1", "node2", "node4"};
  expect_restored(job, 4, 1, 4);  // rebuilds the files of rank 3 on node4; node3 comes back below
  const auto remove = [&](const std::string& node, const std::string& file) {
    const std::string directory = run_directory_of(job.disk, node);
    const auto files = job.disk.snapshot();
    std::size_t removed = 0;  // the file, and one for the next commit
    for (const auto& [path, content] : files) {
      if (!path.starts_with(directory + file)) continue;
      job.disk.remove_all(path);
      ++removed;
    }
    EXPECT_NE(removed, 0U) << file;
  };
  remove("node3", "/rank-3.");
  remove("node4", "/parity-3.");
  job.nodes = {"node0", "node2", "node3", "node4", "node0"};  // rank 1 is lost
  expect_restored(job, 5, 1, 4);
  EXPECT_TRUE(job.logged("3 containers in place, 1 on the prefix"));
}

/// Nothing is lost for it, and with room the next start succeeds.
TEST_F(OtherRanksLevels, WithoutRoomToRebuildEveryRankIsTold) {
  PersistentJob job(4);
  job.options.persistent.every = 0;
  job.options.redundancy.scheme = Scheme::xor_;
  save(job, 4, "s1", 1);
  lose_stores(job, {1});
  job.nodes = {"node0", "node2", "node3"};
  for (const std::string& node : job.nodes) {
    Volume volume;
    volume.capacity_bytes = job.disk.used_bytes("/nodes/" + node);
    job.disk.set_volume("/nodes/" + node, volume);
    volume.capacity_bytes = job.disk.used_bytes("/nodes/" + node) + 4096;
    job.disk.set_volume("/nodes/" + node, volume);
  }
  job.ranks = 3;
  (void)expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    ElasticProgram program(scope.rank, scope.ranks);
    (void)engine.restore(program.state());
  }),
                          ErrorCode::no_space);
  for (const std::string& node : job.nodes) job.disk.set_volume("/nodes/" + node, {});
  expect_restored(job, 3, 1, 4);
}

/// While a lost node's containers are rebuilt and read; from the stores, or in part from the prefix.
TEST_F(OtherRanksLevels, ADeathAnywhereInARestoreLosesNothing) {
  for (const bool from_prefix : {false, true}) {
    PersistentJob job(4);
    job.options.persistent.every = from_prefix ? 1 : 0;
    job.options.redundancy.scheme = from_prefix ? Scheme::single : Scheme::xor_;
    save(job, 4, "s1", 1);
    lose_stores(job, {1});
    job.ranks = 3;
    job.nodes = {"node0", "node2", "node3"};
    const auto before = job.disk.snapshot();
    const auto restore = [&](RankScope& scope) {
      Engine engine = scope.make_engine();
      ElasticProgram program(scope.rank, scope.ranks);
      (void)engine.restore(program.state());
    };
    expect_all_returned(job.start(restore));
    const std::vector<std::uint64_t> events = job.events;
    const std::vector<std::uint64_t> operations = job.operations;
    const auto run = [&](int rank) {
      const auto outcomes = job.start(restore);
      for (int other = 0; other < 3; ++other) {
        const auto& outcome = outcomes[static_cast<std::size_t>(other)];
        EXPECT_TRUE(outcome.returned() || outcome.died || outcome.failure) << other;
        if (outcome.failure) {
          EXPECT_TRUE(outcome.failure->code == ErrorCode::timeout || outcome.failure->code == ErrorCode::rank_failed)
              << faults::text_of(outcome.failure);
        }
      }
      EXPECT_TRUE(only_died(outcomes, rank));
      expect_restored(job, 3, 1, 4);
      expect_restored(job, 2 + rank, 1, 4);
      job.disk.restore(before);
      job.ranks = 3;
    };
    const std::uint64_t step = full_test() ? 1 : 23;
    for (int rank = 0; rank < 3 && !HasFailure(); ++rank) {
      job.nodes = {"node0", "node2", "node3", "node0"};
      for (std::uint64_t n = 0; n < events[static_cast<std::size_t>(rank)] && !HasFailure(); n += step) {
        SCOPED_TRACE(compose("rank {}, event {}", rank, n));
        job.plan = [&](testing::InProcessWorld& world) { world.stop_at(rank, n, testing::StopKind::die); };
        run(rank);
      }
      for (std::uint64_t n = 1; n <= operations[static_cast<std::size_t>(rank)] && !HasFailure(); n += (step + 6) / 7) {
        SCOPED_TRACE(compose("rank {}, operation {}", rank, n));
        job.disk.stop_world_after(rank, n, n);
        run(rank);
      }
    }
  }
}

}  // namespace
}  // namespace kedge::faults::other_ranks_levels_test
