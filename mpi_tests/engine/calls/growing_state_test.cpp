// States whose variables grow, move and change their place between checkpoints.
#include <gmock/gmock.h>

#include <array>
#include <complex>
#include <memory>
#include <numeric>

#include "harness/engine_checks.hpp"

namespace kedge::faults {

struct Particle {
  std::array<double, 3> position{};
  std::int64_t id = 0;
  float mass[2] = {0, 0};
  std::int32_t unnamed = 0;
  auto operator<=>(const Particle&) const = default;
};
inline std::string kedge_members(const Particle*) {
  return members("position", &Particle::position, "id", &Particle::id, "mass", &Particle::mass);
}

/// Begins like a Particle, and has other things in it.
struct Cell {
  std::array<double, 3> position{};
  double volume = 0;
  std::int64_t id = 0;
};
inline std::string kedge_members(const Cell*) {
  return members("position", &Cell::position, "volume", &Cell::volume, "id", &Cell::id);
}

struct Plain {
  int a = 0;
  char b = 0;
  bool operator==(const Plain&) const = default;
};

namespace {

enum class Phase : std::uint16_t { prefault, run };

Particle particle(int rank, std::size_t i) {
  const auto number = static_cast<double>(i);
  return {{number, number + 0.5, static_cast<double>(rank)}, static_cast<std::int64_t>(i) * 10 + rank, {1, 2}, 7};
}

std::vector<Particle> particles(int rank, std::size_t count) {
  std::vector<Particle> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(particle(rank, i));
  return all;
}

class GrowingState : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static DiskOptions disk() {
    return GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }
};

TEST_P(GrowingState, ContainersAreSavedAsTheyAreThenAndResizedToWhatWasSaved) {
  SimulatedJob job(3, disk());
  const std::vector<std::size_t> sizes{5, 2'000'000 / 8, 1000, 0, 70'000};
  for (std::size_t start = 0; start < sizes.size(); ++start) {
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      std::vector<double> grid;
      std::string text;
      std::vector<Particle> cloud = particles(9, 3);
      const State state =
          State().add("grid", grid).add("text", text).add("cloud", cloud).add("job size", scope.ranks, Replicated{});
      const auto rank = static_cast<std::size_t>(scope.rank);
      const auto tag = engine.restore(state);
      ASSERT_EQ(tag.has_value(), start != 0);
      if (start != 0) {
        const std::size_t before = sizes[start - 1];
        ASSERT_EQ(grid.size(), before + rank);
        for (std::size_t i = 0; i < grid.size(); ++i) ASSERT_EQ(grid[i], static_cast<double>(i + before));
        EXPECT_EQ(text, std::string(before % 100, 'x'));
        EXPECT_EQ(cloud, particles(scope.rank, before % 50 * rank));
      }
      // Twice in one start: the memory of the first checkpoint is gone when the second is made.
      for (const std::size_t size : {std::size_t{1000}, sizes[start]}) {
        grid = std::vector<double>(size + rank);
        std::iota(grid.begin(), grid.end(), static_cast<double>(size));
        text.assign(size % 100, 'x');
        cloud = particles(scope.rank, size % 50 * rank);
        engine.checkpoint("step", state);
      }
    }));
  }
}

TEST_P(GrowingState, EveryKindOfVariableComesBack) {
  SimulatedJob job(2, disk());
  for (const bool first : {true, false}) {
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Phase phase = first ? Phase::run : Phase::prefault;
      std::array<float, 4> four{};
      double table[2][3] = {};
      std::vector<std::array<double, 3>> points;
      std::vector<std::complex<double>> waves;
      std::vector<Phase> phases;
      Plain plain;
      std::vector<Plain> plains;
      Particle one;
      std::array<Particle, 2> two;
      std::vector<std::byte> bytes;
      if (first) {
        four = {1, 2, 3, 4};
        table[1][2] = 12;
        points = {{1, 2, 3}, {4, 5, 6}};
        waves = {{1, -1}};
        phases = {Phase::run, Phase::prefault, Phase::run};
        plain = {3, 'c'};
        plains = {{1, 'a'}, {2, 'b'}};
        one = particle(scope.rank, 4);
        two = {particle(scope.rank, 5), particle(scope.rank, 6)};
        bytes = {std::byte{1}, std::byte{2}};
      }
      State state;
      state.add("phase", phase).add("four", four).add("table", table).add("points", points).add("waves", waves);
      state.add("phases", phases).add("plain", plain).add("plains", plains).add("one", one).add("two", two);
      state.add("bytes", bytes);
      if (first) {
        engine.checkpoint("a", state);
        EXPECT_EQ(engine.open(), "a");
        std::map<std::string, RegionInfo> regions;
        for (const RegionInfo& region : engine.regions()) regions[region.name] = region;
        EXPECT_EQ(regions["table"].shape, (Shape{2, 3}));
        EXPECT_EQ(regions["points"].shape, (Shape{2, 3}));
        EXPECT_EQ(regions["phases"].dtype, DataType::uint16);
        EXPECT_EQ(regions["plains"].shape, (Shape{2, sizeof(Plain)}));
        EXPECT_EQ(regions["plains"].members, "");
        EXPECT_EQ(regions["two"].shape, (Shape{2, sizeof(Particle)}));
        EXPECT_EQ(regions["two"].members, "position:float64[3]@0;id:int64@24;mass:float32[2]@32");
        return;
      }
      EXPECT_EQ(engine.restore(state), "a");
      EXPECT_EQ(phase, Phase::run);
      EXPECT_EQ(four, (std::array<float, 4>{1, 2, 3, 4}));
      EXPECT_EQ(table[1][2], 12);
      EXPECT_EQ(points, (std::vector<std::array<double, 3>>{{1, 2, 3}, {4, 5, 6}}));
      EXPECT_EQ(waves, (std::vector<std::complex<double>>{{1, -1}}));
      EXPECT_EQ(phases, (std::vector<Phase>{Phase::run, Phase::prefault, Phase::run}));
      EXPECT_EQ(plain, (Plain{3, 'c'}));
      EXPECT_EQ(plains, (std::vector<Plain>{{1, 'a'}, {2, 'b'}}));
      EXPECT_EQ(one, particle(scope.rank, 4));
      EXPECT_EQ(two, (std::array<Particle, 2>{particle(scope.rank, 5), particle(scope.rank, 6)}));
      EXPECT_EQ(bytes, (std::vector<std::byte>{std::byte{1}, std::byte{2}}));
    }));
  }
}

/// A block of a global array whose length is another at each step, and so is each rank's part of it.
struct MovingBlock {
  int rank = 0;
  int ranks = 0;
  std::vector<Particle> mine;

  [[nodiscard]] std::uint64_t count(int of, int step) const {
    const int some = (of * 7 + step * 3) % 5 + (of == ranks - 1 ? 1 : 0);
    return static_cast<std::uint64_t>(some);
  }
  [[nodiscard]] Block block(int step) const {
    std::uint64_t before = 0, all = 0;
    for (int each = 0; each < ranks; ++each) {
      if (each < rank) before += count(each, step);
      all += count(each, step);
    }
    return Shard{Shape{all}, Shape{before}};
  }
};

TEST_P(GrowingState, GlobalArraysChangeTheirShapeAndWhoHasWhat) {
  SimulatedJob job(4, disk());
  job.options.persistent.every = 1;
  for (int step = 0; step < 6; ++step) {
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      MovingBlock block{scope.rank, scope.ranks, {}};
      int now = step;
      const State state = State().add("cloud", block.mine, [&] { return block.block(now); });
      EXPECT_EQ(engine.restore(state).has_value(), step != 0);
      if (step != 0) {
        EXPECT_EQ(block.mine, particles(scope.rank, block.count(scope.rank, step - 1)));
      }
      block.mine = particles(scope.rank, block.count(scope.rank, step));
      engine.checkpoint("step", state);
      EXPECT_EQ(engine.level("step"), Level::persistent);
    }));
  }
}

TEST_P(GrowingState, ABlockOfAVectorHasAShapeThatMustFit) {
  SimulatedJob job(2, disk());
  OnEachRank wrong(2), elsewhere(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const auto rank = static_cast<std::uint64_t>(scope.rank);
    std::vector<double> field(12, scope.rank + 0.5);
    const Block block(Shape{3, 4}, Shard{{6, 4}, {3 * rank, 0}});
    const State state = State().add("field", field, block);
    engine.checkpoint("a", state);
    field.clear();
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_EQ(field, std::vector<double>(12, scope.rank + 0.5));
    // Another place, or another shape, is not taken.
    elsewhere.put(scope.rank, failure_of([&] {
                    (void)engine.restore(State().add("field", field, Block({4, 3}, Shard{{8, 3}, {4 * rank, 0}})));
                  }));
    if (scope.rank == 1) field.resize(13);
    wrong.put(scope.rank, failure_of([&] { engine.checkpoint("b", state); }));
    EXPECT_EQ(engine.restore(state), "a");
    engine.checkpoint("b", state);
  }));
  ASSERT_TRUE(elsewhere.same() && wrong.same());
  EXPECT_EQ(elsewhere.same()->code, ErrorCode::mismatch);
  EXPECT_EQ(wrong.same()->code, ErrorCode::invalid_argument);
  EXPECT_EQ(wrong.same()->rank, 1);
  EXPECT_THAT(wrong.same()->message,
              testing::HasSubstr("the block of 'field' has shape 3 x 4, but the variable has 13"));
}

TEST_P(GrowingState, AStructWithOtherMembersIsAMismatch) {
  struct Old {
    std::array<double, 6> all{};
  };
  SimulatedJob job(2, disk());
  std::vector<OnEachRank> met(5, OnEachRank(2));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Particle> cloud = particles(scope.rank, 3);
    std::vector<Plain> plains(2);
    engine.checkpoint("a", State().add("cloud", cloud).add("plains", plains));
    std::vector<Cell> cells;
    std::vector<Old> old;
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> numbers;
    std::vector<Particle> from_plain;
    const std::vector<State> wanted{State().add("cloud", cells), State().add("cloud", old), State().add("cloud", bytes),
                                    State().add("cloud", numbers), State().add("plains", from_plain)};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      met[i].put(scope.rank, failure_of([&] { (void)engine.restore(wanted[i]); }));
    }
    EXPECT_EQ(engine.restore(State().add("cloud", cloud)), "a");
  }));
  for (const OnEachRank& each : met) {
    ASSERT_TRUE(each.same());
    EXPECT_EQ(each.same()->code, ErrorCode::mismatch) << text_of(each.same());
  }
  EXPECT_THAT(met[0].same()->message,
              testing::AllOf(testing::HasSubstr("id:int64@24"), testing::HasSubstr("volume:float64@24")));
}

TEST_P(GrowingState, ANameThatIsAddedAgainStandsForTheNewVariable) {
  SimulatedJob job(1, disk());
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> one(3, 1.0);
    std::vector<double> other(5, 2.0);
    int step = 4;
    State state;
    state.add("values", one).add("step", step).add("values", other);
    EXPECT_EQ(state.items().size(), 2U);
    engine.checkpoint("a", state);
    other.clear();
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_EQ(other, std::vector<double>(5, 2.0));
    EXPECT_EQ(one, std::vector<double>(3, 1.0));
  }));
}

TEST_P(GrowingState, WhatGrowsBeyondTheQuotaIsRefusedOnAllRanksAndTheNextThatFitsIsTaken) {
  SimulatedJob job(2, disk());
  job.options.store.quota_bytes = 1 << 20U;
  OnEachRank met(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> values(100, scope.rank);
    const State state = State().add("values", values);
    engine.checkpoint("a", state);
    if (scope.rank == 1) values.resize(1 << 20U);
    met.put(scope.rank, failure_of([&] { engine.checkpoint("b", state); }));
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_EQ(values, std::vector<double>(100, scope.rank));
    values.resize(200, 5.0);
    engine.checkpoint("c", state);
    EXPECT_EQ(engine.restore(state), "c");
  }));
  ASSERT_TRUE(met.same());
  EXPECT_EQ(met.same()->code, ErrorCode::no_space);
}

/// A container of the user's own that does not do as it is told.
struct Stubborn {
  std::vector<double> values;
  std::function<void(std::size_t)> on_resize;
  bool has_no_data = false;
  [[nodiscard]] double* data() { return has_no_data ? throw std::runtime_error("nothing to show") : values.data(); }
  [[nodiscard]] std::size_t size() const { return values.size(); }
  void resize(std::size_t count) const { on_resize(count); }
};

TEST_P(GrowingState, WhatFailsInTheUsersCodeOnOneRankFailsOnAll) {
  SimulatedJob job(3, disk());
  std::vector<OnEachRank> met(5, OnEachRank(3));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Stubborn own{std::vector<double>(10, 1.0), [&](std::size_t count) { own.values.resize(count); }};
    bool fails = false;
    const State state = State().add("own", own, [&]() -> Block {
      if (fails) throw std::runtime_error("no idea where it is");
      return {};
    });
    engine.checkpoint("a", state);
    fails = scope.rank == 1;
    met[0].put(scope.rank, failure_of([&] { engine.checkpoint("b", state); }));
    fails = false;
    own.has_no_data = scope.rank == 1;
    met[4].put(scope.rank, failure_of([&] { engine.checkpoint("c", state); }));
    own.has_no_data = false;
    const auto restore_with = [&](std::function<void(std::size_t)> on_resize) {
      own.values.clear();
      if (scope.rank == 2) own.on_resize = std::move(on_resize);
      return failure_of([&] { EXPECT_EQ(engine.restore(state), "a"); });
    };
    met[1].put(scope.rank, restore_with([](std::size_t) { throw std::bad_alloc(); }));
    met[2].put(scope.rank, restore_with([](std::size_t) {}));
    // Kedge's own codes mean what Kedge found, not what the application did.
    for (const ErrorCode code : {ErrorCode::corrupt, ErrorCode::timeout, ErrorCode::busy}) {
      const auto failure = restore_with([&](std::size_t) { throw Error(code, "the user's own"); });
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, ErrorCode::invalid_argument) << to_string(*failure);
      EXPECT_THAT(failure->message, testing::HasSubstr("the user's own"));
    }
    met[3].put(scope.rank, restore_with([&](std::size_t count) { own.values.resize(count); }));
    EXPECT_EQ(own.values, std::vector<double>(10, 1.0));
  }));
  EXPECT_EQ(met[0].same()->code, ErrorCode::invalid_argument);
  EXPECT_EQ(met[0].same()->rank, 1);
  EXPECT_THAT(met[0].same()->message, testing::HasSubstr("no idea where it is"));
  EXPECT_EQ(met[1].same()->code, ErrorCode::no_space);
  EXPECT_EQ(met[2].same()->code, ErrorCode::invalid_argument);
  EXPECT_THAT(met[2].same()->message, testing::HasSubstr("resize(10) left 'own' with 0 elements"));
  EXPECT_FALSE(met[3].same());
  EXPECT_EQ(met[4].same()->code, ErrorCode::invalid_argument);
  EXPECT_THAT(met[4].same()->message, testing::HasSubstr("the memory of 'own' threw: nothing"));
}

TEST_P(GrowingState, RanksThatDisagreeAboutASharedVariableAreTold) {
  SimulatedJob job(2, disk());
  std::vector<OnEachRank> met(2, OnEachRank(2));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Particle> cloud = particles(scope.rank, 2);
    std::vector<Plain> plains(2);
    const Shard half{Shape{4}, Shape{2 * static_cast<std::uint64_t>(scope.rank)}};
    State missing, other;
    if (scope.rank == 0) missing.add("cloud", cloud, half);
    met[0].put(scope.rank, failure_of([&] { engine.checkpoint("a", missing); }));
    if (scope.rank == 0) other.add("cloud", cloud, half);
    else other.add("cloud", plains, half);
    met[1].put(scope.rank, failure_of([&] { engine.checkpoint("a", other); }));
    EXPECT_EQ(engine.restore(State()), std::nullopt);
  }));
  for (const OnEachRank& each : met) {
    ASSERT_TRUE(each.same());
    EXPECT_EQ(each.same()->code, ErrorCode::mismatch);
  }
  EXPECT_THAT(met[1].same()->message, testing::HasSubstr("disagree about region 'cloud'"));
}

TEST_P(GrowingState, ASourceIsRestoredLikeTheRunsOwn) {
  SimulatedJob job(2, disk());
  job.options.persistent.every = 1;
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Particle> cloud = particles(scope.rank, 6);
    engine.checkpoint("a", State().add("cloud", cloud));
    engine.finalize();
  }));
  job.options.run = "another";
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Particle> cloud;
    const State state = State().add("cloud", cloud);
    EXPECT_EQ(engine.restore(state), std::nullopt);
    EXPECT_EQ(engine.restore(state, Source{job.options.persistent.path, "", "latest"}), "a");
    EXPECT_EQ(cloud, particles(scope.rank, 6));
  }));
}

INSTANTIATE_TEST_SUITE_P(Storage, GrowingState, testing::Values(true, false),
                         [](const auto& each) { return each.param ? "Memory" : "Block"; });

}  // namespace
}  // namespace kedge::faults
