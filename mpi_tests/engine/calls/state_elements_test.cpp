// Elements of one kind are never taken for those of another, however many bytes both have.
#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults {

struct Two {
  double a = 0;
  double b = 0;
};
struct Three {
  double a = 0;
  double b = 0;
  double c = 0;
};
/// The same members at the same offsets as DescribedThree, in fewer bytes.
struct DescribedTwo {
  double a = 0;
  double b = 0;
};
inline std::string kedge_members(const DescribedTwo*) { return members("a", &DescribedTwo::a, "b", &DescribedTwo::b); }
struct DescribedThree {
  double a = 0;
  double b = 0;
  double rest = 0;
};
inline std::string kedge_members(const DescribedThree*) {
  return members("a", &DescribedThree::a, "b", &DescribedThree::b);
}

namespace {

/// Saves `count` of one type and restores them into as many of another as take the same bytes: a mismatch on all ranks,
/// and the variable is as it was.
template <class Saved, class Other>
void expect_mismatch(std::size_t count) {
  SimulatedJob job(2);
  OnEachRank met(2);
  OnEachRank met_with_function(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Saved> saved(count);
    engine.checkpoint("a", State().add("v", saved));
    std::vector<Other> moving(count * sizeof(Saved) / sizeof(Other));
    met_with_function.put(scope.rank,
                          failure_of([&] { (void)engine.restore(State().add("v", moving, [] { return Block(); })); }));
    ASSERT_EQ(count * sizeof(Saved) % sizeof(Other), 0U);
    std::vector<Other> other(count * sizeof(Saved) / sizeof(Other));
    met.put(scope.rank, failure_of([&] { (void)engine.restore(State().add("v", other)); }));
    EXPECT_EQ(other.size(), count * sizeof(Saved) / sizeof(Other));
    saved.clear();
    EXPECT_EQ(engine.restore(State().add("v", saved)), "a");
    EXPECT_EQ(saved.size(), count);
  }));
  ASSERT_TRUE(met.same());
  EXPECT_EQ(met.same()->code, ErrorCode::mismatch) << to_string(*met.same());
  if (sizeof(Other) == 1) return;  // bytes have no elements that could be others
  ASSERT_TRUE(met_with_function.same());
  EXPECT_EQ(met_with_function.same()->code, ErrorCode::mismatch) << to_string(*met_with_function.same());
}

TEST(StateElements, ArraysOfAnotherLength) { expect_mismatch<std::array<double, 3>, std::array<double, 2>>(10); }
TEST(StateElements, StructsOfAnotherSize) { expect_mismatch<Two, Three>(3); }
TEST(StateElements, StructsOfAnotherSizeWithTheSameMembers) { expect_mismatch<DescribedTwo, DescribedThree>(3); }
TEST(StateElements, BytesAreNoStructs) { expect_mismatch<std::byte, Three>(48); }
TEST(StateElements, StructsAreNoBytes) { expect_mismatch<Three, std::byte>(2); }

/// An exception that does not derive from std::exception fails on all ranks as well.
TEST(StateElements, RandomNumberEnginesGoOnWhereTheyWere) {
  SimulatedJob job(1);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::mt19937_64 random(7);
    (void)random();
    engine.checkpoint("a", State().add("random", random));
    const auto next = random();
    random.seed(1);
    EXPECT_EQ(engine.restore(State().add("random", random)), "a");
    EXPECT_EQ(random(), next);
  }));
}

TEST(StateElements, WhateverTheApplicationsFunctionsThrowFailsOnAllRanks) {
  SimulatedJob job(3);
  OnEachRank met(3);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> values(10, 1.0);
    bool fails = scope.rank == 1;
    const State state = State().add("values", values, [&]() -> Block {
      if (fails) throw 42;
      return {};
    });
    met.put(scope.rank, failure_of([&] { engine.checkpoint("a", state); }));
    fails = false;
    engine.checkpoint("b", state);
  }));
  ASSERT_TRUE(met.same());
  EXPECT_EQ(met.same()->code, ErrorCode::invalid_argument);
  EXPECT_EQ(met.same()->rank, 1);
  EXPECT_THAT(met.same()->message, testing::HasSubstr("the function for the block of 'values' threw"));
}

/// A region that describes memory may have a block that changes, too; it is the memory that is saved.
TEST(StateElements, ARegionOfFixedMemoryMayHaveABlockThatChanges) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> values(10, 4.0);
    const MutableRegion region = mutable_region(std::span(values));
    State state;
    state.add("grid", region, [] { return Block(Replicated{}); });
    engine.checkpoint("a", state);
    values.assign(10, 0.0);
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_THAT(values, testing::Each(4.0));
  }));
}

}  // namespace
}  // namespace kedge::faults
