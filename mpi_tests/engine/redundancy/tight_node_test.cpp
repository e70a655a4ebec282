// Ranks that share a node's memory: what all of them are about to take is added up before any of them takes it, all get
// the same no_space, and a smaller checkpoint works. The limit of the simulated node refuses nothing: where it is
// exceeded a kernel would kill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::tight_node_test {
namespace {

constexpr int kRanks = 4;
constexpr std::uint64_t kKiB = 1024;

class TightNode : public testing::Test {
 protected:
  TightNode() {
    job.ranks_per_node = kRanks;
    job.options.redundancy.scheme = Scheme::single;
  }

  void limit(int node, std::uint64_t bytes) {
    Volume volume;
    volume.memory_backed = true;
    volume.cgroup_bytes = bytes;
    job.disk.make_directories(compose("/nodes/node{}", node), 0700);
    job.disk.set_volume(compose("/nodes/node{}", node), volume);
  }
  [[nodiscard]] std::uint64_t most_used(int node) const {
    return job.disk.most_used_bytes(compose("/nodes/node{}", node));
  }

  /// So many KiB per rank.
  static std::optional<Failure> save(Engine& engine, const Tag& tag, std::size_t kib) {
    std::vector<double> values(kib * kKiB / sizeof(double));
    std::iota(values.begin(), values.end(), static_cast<double>(kib));
    State state;
    state.add("values", values);
    return failure_of([&] { engine.checkpoint(tag, state); });
  }
  static std::optional<Failure> restore(Engine& engine, std::size_t kib, const Tag& expected) {
    std::vector<double> values(kib * kKiB / sizeof(double));
    State state;
    state.add("values", values);
    return failure_of([&] {
      EXPECT_EQ(engine.restore(state), expected);
      EXPECT_EQ(values.back(), static_cast<double>(kib + values.size() - 1));
    });
  }

  /// All ranks were refused with these words.
  static void expect_no_space(const OnEachRank& met, const std::string& words) {
    const auto failure = met.same();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_THAT(failure->message, testing::ContainsRegex(words));
  }

  /// A start that opens "a", 256 KiB per rank, on an empty node0: refused in these words before it takes anything, and
  /// fine with this limit.
  void expect_opened_only_with(std::uint64_t enough_bytes, const std::string& refusal) {
    OnEachRank met(kRanks);
    const auto open = [&](RankScope& scope) {
      Engine engine = scope.make_engine();
      met.put(scope.rank, restore(engine, 256, "a"));
    };
    expect_returned(job.start(open));
    expect_no_space(met, refusal);
    EXPECT_LT(most_used(0), 100 * kKiB) << "none was begun";
    limit(0, enough_bytes);
    expect_returned(job.start(open));
    EXPECT_FALSE(met.same());
  }

  SimulatedJob job{kRanks};
};

TEST_F(TightNode, FourRanksThatDoNotFitAreRefusedOnAllAndASmallerCheckpointWorks) {
  limit(0, 600 * kKiB);
  OnEachRank met(kRanks);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 32));
    met.put(scope.rank, save(engine, "b", 256));
    EXPECT_FALSE(restore(engine, 32, "a"));
    EXPECT_FALSE(save(engine, "c", 48));
    EXPECT_FALSE(restore(engine, 48, "c"));
  }));
  expect_no_space(met, "is free .memory cgroup.");
  EXPECT_LE(most_used(0), 600 * kKiB) << "the kernel would have killed a rank";
}

TEST_F(TightNode, WhatTheNextCheckpointNeedsIsAddedUpBeforeAnyRankTakesIt) {
  limit(0, 1500 * kKiB);  // five containers of 280 KiB
  OnEachRank met(kRanks);
  std::uint64_t used = 0;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    met.put(scope.rank, save(engine, "b", 256));
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 0) used = job.disk.used_bytes("/nodes/node0");
    scope.communicator.barrier(Deadline::never());
    EXPECT_FALSE(save(engine, "c", 16)) << "what b would have needed is forgotten";
    EXPECT_FALSE(restore(engine, 16, "c"));
  }));
  // Four containers: what was made ready is given back.
  expect_no_space(met,
                  "the 4 ranks on this node need 1.0 MiB more in the node-local store, but .* is free .memory cgroup.");
  EXPECT_LT(used, 1200 * kKiB) << "what was made ready for b is given back";
  EXPECT_LE(most_used(0), 1500 * kKiB);
}

/// Each variable of a state would fit alone, and those of one rank, too.
TEST_F(TightNode, WhatTheFirstCheckpointOfAStateNeedsIsAddedUpBeforeAnyRankTakesIt) {
  limit(0, 600 * kKiB);
  OnEachRank met(kRanks);
  std::uint64_t used = 0;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<std::vector<double>> variables(8, std::vector<double>(4096));
    State state;
    for (std::size_t i = 0; i < variables.size(); ++i) state.add(compose("v{}", i), variables[i]);
    met.put(scope.rank, failure_of([&] { engine.checkpoint("a", state); }));
    if (scope.rank == 0) used = most_used(0);
    scope.communicator.barrier(Deadline::never());
    EXPECT_FALSE(save(engine, "b", 64));
    EXPECT_FALSE(restore(engine, 64, "b"));
  }));
  expect_no_space(met, "the 4 ranks on this node need 1.0 MiB more");
  EXPECT_LT(used, 100 * kKiB) << "none was begun";
  EXPECT_LE(most_used(0), 600 * kKiB);
}

/// What the last checkpoint leads to expect is no reason to refuse one that is smaller, or whose sizes moved.
TEST_F(TightNode, AStateThatShrinksOrMovesIsNotRefusedForWhatTheLastOneTook) {
  job.options.store.quota_bytes = 1400 * kKiB;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    EXPECT_FALSE(save(engine, "b", 1));
    EXPECT_FALSE(save(engine, "c", scope.rank == 0 ? 400 : 16));
    EXPECT_FALSE(save(engine, "d", scope.rank == 1 ? 400 : 16));
    EXPECT_FALSE(save(engine, "e", scope.rank == 2 ? 400 : 16));
    EXPECT_FALSE(restore(engine, scope.rank == 2 ? 400 : 16, "e"));
  }));
}

/// What was made ready for the next checkpoint is used, or given back when one is refused.
TEST_F(TightNode, WhatWasMadeReadyIsInNoCheckpointsWay) {
  limit(0, 3200 * kKiB);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    EXPECT_FALSE(save(engine, "b", scope.rank == 0 ? 1800 : 16));
    EXPECT_FALSE(restore(engine, scope.rank == 0 ? 1800 : 16, "b"));
  }));
}

/// Only some ranks may have anything left to save.
TEST_F(TightNode, AStateThatIsEmptyOnSomeRanksIsNotRefusedForWhatTheLastOneTook) {
  job.options.store.quota_bytes = 1400 * kKiB;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    EXPECT_FALSE(save(engine, "b", scope.rank == 3 ? 16 : 0));
    EXPECT_FALSE(save(engine, "c", scope.rank == 3 ? 16 : 0));
  }));
}

/// Who saves without a State does not say how much there will be: it counts as much as it was the last time.
TEST_F(TightNode, WithoutAStateTheLastCheckpointIsExpectedAgainAndASmallerOneIsPossible) {
  limit(0, 1500 * kKiB);
  OnEachRank met(kRanks);
  std::uint64_t used = 0;
  const auto save_plain = [](Engine& engine, const Tag& tag, std::size_t kib) {
    const std::vector<double> values(kib * kKiB / sizeof(double));
    return failure_of([&] {
      engine.create(tag);
      (void)engine.save("values", {values.data(), DataType::float64, {values.size()}});
      engine.commit();
    });
  };
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save_plain(engine, "a", 256));
    met.put(scope.rank, failure_of([&] { engine.create("b"); }));
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 0) used = job.disk.used_bytes("/nodes/node0");
    scope.communicator.barrier(Deadline::never());
    EXPECT_FALSE(save_plain(engine, "c", 16));
  }));
  expect_no_space(met, "the 4 ranks on this node need [0-9.]+ KiB more");
  EXPECT_LT(used, 1200 * kKiB);
}

/// One rank's vector grew; what the others know of the checkpoint before fits.
TEST_F(TightNode, AStateThatGrewOnOneRankIsAddedUpBeforeAnyRankTakesIt) {
  limit(0, 900 * kKiB);
  OnEachRank met(kRanks);
  std::uint64_t used = 0;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 32));
    met.put(scope.rank, save(engine, "b", scope.rank == 2 ? 1024 : 32));
    if (scope.rank == 0) used = most_used(0);
    scope.communicator.barrier(Deadline::never());
    EXPECT_FALSE(restore(engine, 32, "a"));
    EXPECT_FALSE(save(engine, "c", 32));
  }));
  expect_no_space(met, "the 4 ranks on this node need [0-9.]+ (K|M)iB more");
  EXPECT_LT(used, 600 * kKiB) << "two containers of 56 KiB of each rank, and nothing of the third";
}

TEST_F(TightNode, ParityThatDoesNotFitIsNotBegun) {
  job.ranks_per_node = 2;
  job.options.redundancy.scheme = Scheme::partner;
  limit(0, 900 * kKiB);  // three files of 256 KiB
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    EXPECT_EQ(engine.level("a"), Level::local);
    EXPECT_FALSE(restore(engine, 256, "a"));
  }));
  EXPECT_TRUE(job.logged("a is not protected against the loss of a node: no_space"));
  EXPECT_TRUE(job.logged("the 2 ranks on this node need 5"));
  EXPECT_LE(most_used(0), 900 * kKiB);
}

TEST_F(TightNode, WhatIsFetchedForAllRanksOfANodeIsAddedUp) {
  job.options.persistent.every = 1;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    engine.finalize();
  }));
  job.disk.remove_all("/nodes/node0");
  limit(0, 600 * kKiB);
  expect_opened_only_with(2000 * kKiB, "the 4 ranks on this node need 1.1 MiB more");
}

TEST_F(TightNode, WhatIsRebuiltForAllRanksOfANodeIsAddedUp) {
  job.ranks_per_node = 2;
  job.options.redundancy.scheme = Scheme::partner;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_FALSE(save(engine, "a", 256));
    EXPECT_EQ(engine.level("a"), Level::protected_);
    engine.finalize();
  }));
  job.disk.remove_all("/nodes/node0");
  limit(0, 900 * kKiB);  // two containers and two parities are to be made: each rank's would fit, or one of each
  expect_opened_only_with(3000 * kKiB, "the 2 ranks on this node need 1.1 MiB more");
}

}  // namespace
}  // namespace kedge::faults::tight_node_test
