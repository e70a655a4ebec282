// What calls do, and what they refuse, while a checkpoint that another number of ranks saved is open.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "harness/elastic_fixture.hpp"
#include "harness/engine_checks.hpp"

namespace kedge::faults::other_ranks_calls_test {
namespace {

class OtherRanksCalls : public ElasticFixture {
 protected:
  static constexpr std::uint64_t kRows = 8, kColumns = 1000;

  /// Each of four ranks saves two rows; element i of the whole array is i.
  static void save_rows(SimulatedJob& job) {
    start(job, 4, [](Engine& engine, RankScope& scope) {
      const std::uint64_t first = 2 * static_cast<std::uint64_t>(scope.rank);
      std::vector<double> rows(2 * kColumns);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<double>(first * kColumns + i);
      State state;
      state.add("rows", rows, Block({2, kColumns}, Shard{{kRows, kColumns}, {first, 0}}));
      engine.checkpoint("a", state);
      engine.finalize();
    });
  }

  static Want want_rows(double* memory, std::uint64_t first, std::uint64_t rows) {
    return {"rows", mutable_region(memory, {rows, kColumns}), Shard{{kRows, kColumns}, {first, 0}}};
  }

  static std::optional<Failure> load(Engine& engine, const std::vector<Want>& wants) {
    return failure_of([&] { engine.load_all(wants); });
  }
};

/// One rank asks for what cannot be; the others ask for nothing wrong, and learn it, too. Then all ask again.
TEST_F(OtherRanksCalls, OneRankThatAsksForTheImpossibleFailsTheLoadOnAll) {
  PersistentJob job(4);
  save_rows(job);
  start(job, 3, [](Engine& engine, RankScope& scope) {
    std::vector<double> memory(2 * kColumns);
    double* const data = memory.data();
    const std::vector<Want> right = {want_rows(data, 1, 2)};
    const auto expect_refused = [&](const std::vector<Want>& wrong, const std::string& words) {
      const auto failure = load(engine, scope.rank == 1 ? wrong : right);
      ASSERT_TRUE(failure) << words;
      EXPECT_EQ(failure->code, ErrorCode::invalid_argument) << failure->message;
      EXPECT_EQ(failure->rank, 1);
      EXPECT_TRUE(says(failure->message, {words})) << failure->message;
    };
    ASSERT_TRUE(engine.open());
    expect_refused({want_rows(nullptr, 1, 2)}, "no memory is given");
    expect_refused({want_rows(data, 1, 1), want_rows(data + kColumns - 1, 4, 1)}, "into the same memory");
    expect_refused({want_rows(data, 1, 1), want_rows(data, 4, 1)}, "into the same memory");
    EXPECT_FALSE(load(engine, {want_rows(data, 1, 1), want_rows(data + kColumns, 4, 1)}));
    EXPECT_EQ(memory[0], 1.0 * kColumns);
    EXPECT_EQ(memory[kColumns], 4.0 * kColumns);
    engine.close();
  });
}

/// Every byte is verified when it is loaded, although open verified it, too: one process finds the damage, all get the
/// same failure, and close has it again.
TEST_F(OtherRanksCalls, DamageAfterTheOpenEndsTheLoadOnAllRanksAlike) {
  PersistentJob job(4);
  job.options.persistent.every = 0;
  job.nodes = {"node0", "node1", "node2", "node2"};
  save_rows(job);
  const std::string path = superblocks(job.disk, 3).begin()->first;
  const double looked_for = 7 * kColumns + 500;
  const auto bytes = job.disk.read_all(path);
  const auto pattern = std::as_bytes(std::span(&looked_for, 1));
  const auto at = std::search(bytes.begin(), bytes.end(), pattern.begin(), pattern.end());
  ASSERT_NE(at, bytes.end());
  const auto offset = static_cast<std::uint64_t>(at - bytes.begin());
  std::barrier all(3);
  start(job, 3, [&](Engine& engine, RankScope& scope) {
    std::vector<double> memory(kRows * kColumns);
    ASSERT_TRUE(engine.open());
    all.arrive_and_wait();
    if (scope.rank == 0) job.disk.flip_bit(path, offset, 3);
    all.arrive_and_wait();
    const auto failure = load(engine, {want_rows(memory.data(), 0, kRows)});
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::corrupt) << failure->message;
    EXPECT_EQ(failure->rank, 2);
    const auto again = failure_of([&] { engine.close(); });
    ASSERT_TRUE(again);
    EXPECT_EQ(again->code, ErrorCode::corrupt);
    EXPECT_EQ(again->rank, 2) << "the rank that found it, not the first that heard of it";
    EXPECT_EQ(again->message, failure->message);
  });
}

/// It may be the first in a while of which the loss of a node leaves enough.
TEST_F(OtherRanksCalls, TheNextCheckpointIsProtectedWhateverItsNumber) {
  PersistentJob job(4);
  job.options.persistent.every = 0;
  job.options.redundancy.scheme = Scheme::xor_;
  save(job, 4, "s1", 1);
  job.options.redundancy.every = 5;
  start(job, 3, [](Engine& engine, RankScope& scope) {
    ElasticProgram program(scope.rank, scope.ranks);
    ASSERT_TRUE(engine.restore(program.state()));
    for (int step = 2; step < 4; ++step) {
      program.set(step);
      engine.checkpoint(compose("s{}", step), program.state());
      EXPECT_EQ(engine.level(compose("s{}", step)), step == 2 ? Level::protected_ : Level::local) << step;
    }
    engine.finalize();
  });
}

/// Only as many ranks as saved it can flush it: finalize does not try, and does not fail.
TEST_F(OtherRanksCalls, FinalizeLeavesTheFlushToTheDrain) {
  PersistentJob job(4);
  job.nodes.assign(8, "node0");
  job.options.persistent.every = 1000;
  start(job, 4, [](Engine& engine, RankScope& scope) { commit(engine, scope, "a", 1); });
  for (const int ranks : {3, 6, 4}) {
    expect_restored(job, ranks, 1, 4);
    EXPECT_FALSE(job.logged("is not on the parallel filesystem")) << ranks;
    EXPECT_EQ(tags(job).size(), ranks == 4 ? 1U : 0U);
    EXPECT_TRUE(job.logged("or start the job again with 4 ranks"));
  }
}

/// Ranks may give different States: some with functions for what is each rank's own, some without.
TEST_F(OtherRanksCalls, FunctionsOnSomeRanksOnly) {
  PersistentJob job(4);
  start(job, 4, [](Engine& engine, RankScope& scope) {
    int own = scope.rank, same = 7;
    engine.checkpoint("a", State().add("own", own).add("same", same, Replicated{}));
    engine.finalize();
  });
  std::atomic<int> got = 0;
  start(job, 3, [&](Engine& engine, RankScope& scope) {
    int own = 0, same = 0;
    State state;
    state.add("same", same, Replicated{});
    if (scope.rank == 1) {
      state.add("own", own, PerRank{[&](LogicalRank, std::span<const std::byte>) { ++got; }});
    }
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_EQ(same, 7);
    engine.finalize();
  });
  EXPECT_EQ(got, 1) << "of rank 1, whose container its process reads";
}

/// Calls that are not made of each other are one error on all ranks, and nothing hangs.
TEST_F(OtherRanksCalls, OneRankThatLoadsByItselfWhereTheOthersRestore) {
  PersistentJob job(4);
  save_rows(job);
  for (const bool loads : {true, false}) {
    OnEachRank met(3);
    start(job, 3, [&](Engine& engine, RankScope& scope) {
      std::vector<double> memory(kRows * kColumns);
      const auto failure = failure_of([&] {
        if (scope.rank == 1) {
          (void)engine.open();
          if (loads) engine.load_all({want_rows(memory.data(), 0, kRows)});
          else engine.close();
          return;
        }
        State state;
        state.add("rows", mutable_region(memory.data(), {kRows, kColumns}), Shard{{kRows, kColumns}, {0, 0}});
        (void)engine.restore(state);
      });
      met.put(scope.rank, failure);
    });
    const auto failure = met.same();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::bad_state) << failure->message;
  }
}

/// A number that differed, or that one rank did not save, is not taken for one that is equal on all: whether the odd
/// rank's container is read by rank 0 (of three) or by another (of two).
TEST_F(OtherRanksCalls, WhatWasNotEqualOnAllRanksIsNotReplicated) {
  for (const auto& [ranks, one_is_without] : {std::pair(3, false), {3, true}, {2, false}, {2, true}}) {
    PersistentJob job(4);
    start(job, 4, [without = one_is_without](Engine& engine, RankScope& scope) {
      int same = 7, other = without || scope.rank != 3 ? 7 : 8;
      State state;
      state.add("same", same);
      if (!without || scope.rank != 3) state.add("other", other);
      engine.checkpoint("a", state);
      engine.finalize();
    });
    start(job, ranks, [](Engine& engine, RankScope&) {
      int same = 0, other = 0;
      State state;
      state.add("same", same, Replicated{});
      state.add("other", other, Replicated{});
      const auto failure = failure_of([&] { (void)engine.restore(state); });
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, ErrorCode::mismatch);
      EXPECT_TRUE(says(failure->message, {"'other'"})) << failure->message;
      EXPECT_FALSE(says(failure->message, {"'same'"})) << failure->message;
      EXPECT_EQ(same, 0) << "nothing is loaded";
      State less;
      less.add("same", same, Replicated{});
      ASSERT_TRUE(engine.restore(less));
      EXPECT_EQ(same, 7);
    });
  }
}

}  // namespace
}  // namespace kedge::faults::other_ranks_calls_test
