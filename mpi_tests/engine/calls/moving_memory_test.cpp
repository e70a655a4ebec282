// Memory in a State that is elsewhere at each checkpoint: a function says where.
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults::moving_memory_test {
namespace {

constexpr std::uint64_t kRows = 3;
constexpr std::uint64_t kColumns = 5;

/// As a stencil has them: each step fills the other one.
struct TwoBuffers {
  std::vector<double> current = std::vector<double>(kRows * kColumns);
  std::vector<double> other = current;
  void advance(double value) {
    std::ranges::fill(other, value);
    std::swap(current, other);
  }
  [[nodiscard]] MutableRegion now() { return mutable_region(current.data(), {kRows, kColumns}); }
};

TEST(MovingMemory, IsLookedUpAtEachCheckpointAndAtRestore) {
  SimulatedJob job(2);
  const auto value = [](int rank, int step) { return 10.0 * step + rank; };
  const auto state_of = [](TwoBuffers& buffers, int rank) {
    return State().add(
        "field", [&] { return buffers.now(); },
        Shard{{2 * kRows, kColumns}, {static_cast<std::uint64_t>(rank) * kRows, 0}});
  };
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    TwoBuffers buffers;
    const State state = state_of(buffers, scope.rank);
    for (int step = 1; step < 4; ++step) {
      buffers.advance(value(scope.rank, step));
      engine.checkpoint(std::to_string(step), state);
    }
  }));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    TwoBuffers buffers;
    const State state = state_of(buffers, scope.rank);
    buffers.advance(-1);
    EXPECT_EQ(engine.restore(state), "3");
    EXPECT_THAT(buffers.current, testing::Each(value(scope.rank, 3)));
    EXPECT_THAT(buffers.other, testing::Each(0));
    engine.open();
    EXPECT_EQ(engine.regions().front().shape, (Shape{kRows, kColumns}));
    engine.close();
  }));
}

TEST(MovingMemory, AnyFunctionThatGivesARegionServes) {
  SimulatedJob job(1);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    double a = 1;
    double b = 2;
    double c = 3;
    int calls = 0;
    const auto named = [&] { return mutable_region(&a, {1}); };
    const auto counting = [&, mine = 0]() mutable {
      calls += ++mine;
      return mutable_region(&c, {1});
    };
    std::function<MutableRegion()> kept = [&] { return mutable_region(&b, {1}); };
    const State state = State().add("a", named).add("b", kept).add("c", counting);
    engine.checkpoint("t", state);
    EXPECT_GT(calls, 0);
    a = b = c = 0;
    EXPECT_EQ(engine.restore(state), "t");
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 2);
    EXPECT_EQ(c, 3);
  }));
}

/// Where it is and which block it is: both are looked up, whether the functions have names or not.
TEST(MovingMemory, MayBeABlockThatChanges) {
  for (const bool named : {false, true}) {
    SimulatedJob job(2);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      TwoBuffers buffers;
      std::uint64_t half = static_cast<std::uint64_t>(scope.rank);
      const auto where = [&] { return buffers.now(); };
      const auto block = [&] { return Shard{{2 * kRows, kColumns}, {half * kRows, 0}}; };
      State state;
      if (named) state.add("field", where, block);
      else
        state.add(
            "field", [&] { return buffers.now(); }, [&] { return block(); });
      for (int step = 1; step < 4; ++step) {
        buffers.advance(10.0 * step + scope.rank);
        half = 1 - half;
        engine.checkpoint(std::to_string(step), state);
      }
      buffers.advance(0);
      EXPECT_EQ(engine.restore(state), "3");
      EXPECT_THAT(buffers.current, testing::Each(30 + scope.rank));
      engine.open();
      EXPECT_EQ(std::get<Shard>(engine.regions().front().placement).offset.extents().front(), half * kRows);
      engine.close();
    }));
  }
}

TEST(MovingMemory, WhatTheFunctionThrowsOrGivesTooLittleFailsOnAllRanks) {
  SimulatedJob job(3);
  std::vector<OnEachRank> met(3, OnEachRank(3));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    TwoBuffers buffers;
    bool throws = false;
    std::uint64_t rows = kRows;
    const State state = State().add("field", [&] {
      if (throws) throw std::runtime_error("it is gone");
      return mutable_region(buffers.current.data(), {rows, kColumns});
    });
    buffers.advance(7);
    engine.checkpoint("a", state);
    throws = scope.rank == 1;
    met[0].put(scope.rank, failure_of([&] { engine.checkpoint("b", state); }));
    met[1].put(scope.rank, failure_of([&] { (void)engine.restore(state); }));
    throws = false;
    if (scope.rank == 2) --rows;
    met[2].put(scope.rank, failure_of([&] { (void)engine.restore(state); }));
    rows = kRows;
    buffers.advance(0);
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_THAT(buffers.current, testing::Each(7));
  }));
  for (const std::size_t call : {0U, 1U}) {
    const auto failure = met[call].same();
    ASSERT_TRUE(failure) << call;
    EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_THAT(failure->message, testing::HasSubstr("the function for the memory of 'field' threw: it is gone"));
  }
  const auto failure = met[2].same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::mismatch);
  EXPECT_EQ(failure->rank, 2);
}

/// It is asked twice, and what it throws once is not forgotten.
TEST(MovingMemory, WhatItThrowsOnlyOnceFailsTheCheckpoint) {
  SimulatedJob job(2);
  OnEachRank met(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    TwoBuffers buffers;
    bool throws = scope.rank == 1;
    const State state = State().add("field", [&] {
      if (std::exchange(throws, false)) throw std::runtime_error("not yet");
      return buffers.now();
    });
    met.put(scope.rank, failure_of([&] { engine.checkpoint("a", state); }));
    engine.checkpoint("b", state);
  }));
  const auto failure = met.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->message, testing::HasSubstr("the function for the memory of 'field' threw: not yet"));
}

TEST(MovingMemory, ANullPointerIsNamedWhateverSizeItIsSaidToHave) {
  SimulatedJob job(2);
  OnEachRank met(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const State state =
        State().add("field", [&] { return mutable_region(static_cast<double*>(nullptr), {std::uint64_t{1} << 50U}); });
    met.put(scope.rank, failure_of([&] { engine.checkpoint("a", state); }));
  }));
  const auto failure = met.same();
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, testing::HasSubstr("region 'field' has no memory (null pointer)"));
}

/// A buffer without a shape of its own, as one from a device often is.
TEST(MovingMemory, MayGetItsShapeFromABlock) {
  SimulatedJob job(2);
  OnEachRank met(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    TwoBuffers buffers;
    std::uint64_t count = kRows * kColumns;
    const Block block({kRows, kColumns},
                      Shard{{2 * kRows, kColumns}, {kRows * static_cast<std::uint64_t>(scope.rank), 0}});
    const State state = State().add(
        "field", [&] { return mutable_region(buffers.current.data(), {count}); }, block);
    buffers.advance(3 + scope.rank);
    engine.checkpoint("a", state);
    buffers.advance(0);
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_THAT(buffers.current, testing::Each(3 + scope.rank));
    engine.open();
    EXPECT_EQ(engine.regions().front().shape, (Shape{kRows, kColumns}));
    engine.close();
    if (scope.rank == 1) --count;  // less memory than the block has elements
    met.put(scope.rank, failure_of([&] { (void)engine.restore(state); }));
  }));
  const auto failure = met.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->message,
              testing::HasSubstr("the block of 'field' has shape 3 x 5, but the variable has 14 elements"));
}

}  // namespace
}  // namespace kedge::faults::moving_memory_test
