// Replicated regions: commit compares their bytes between ranks.
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::replicated_test {
namespace {

constexpr int kRanks = 4;

/// What the commits of one start threw, the same on all ranks.
class ReplicatedRegions : public testing::Test {
 protected:
  using Save = std::function<void(Engine&, int rank, int step)>;

  static std::vector<std::optional<Failure>> commit(SimulatedJob& job, int steps, const Save& save) {
    std::vector<OnEachRank> thrown(static_cast<std::size_t>(steps), OnEachRank(kRanks));
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 0; step < steps; ++step) {
        engine.create(std::to_string(step));
        save(engine, scope.rank, step);
        thrown[static_cast<std::size_t>(step)].put(scope.rank, failure_of([&] { engine.commit(); }));
      }
      engine.finalize();
    }));
    std::vector<std::optional<Failure>> same;
    for (OnEachRank& one : thrown) same.push_back(one.same());
    return same;
  }
  static void put(Engine& engine, const std::string& name, const std::vector<std::uint8_t>& bytes,
                  const Placement& placement = Replicated{}) {
    EXPECT_TRUE(engine.save(name, region(bytes.data(), {bytes.size()}), placement));
  }
  static void expect_difference(const std::optional<Failure>& failure, const std::string& name, int higher, int lower) {
    ASSERT_TRUE(failure) << name;
    EXPECT_EQ(failure->code, ErrorCode::mismatch);
    EXPECT_THAT(failure->message,
                testing::HasSubstr(compose("region '{}' is Replicated, and its bytes on rank {} differ from those on "
                                           "rank {}",
                                           name, higher, lower)));
  }

  SimulatedJob job{kRanks};
};

/// In the first commit, in later ones of the same structure, in small and large regions, whichever rank is odd. What
/// was committed stays, and the next commit succeeds.
TEST_F(ReplicatedRegions, WhoseBytesDifferAreNotCommitted) {
  for (const std::size_t size : {1U, 5000U, 5U << 20U}) {
    for (int odd = 0; odd < kRanks; ++odd) {
      const auto failures = commit(job, 4, [&](Engine& engine, int rank, int step) {
        std::vector<std::uint8_t> bytes(size, static_cast<std::uint8_t>(step));
        if (rank == odd && step % 2 == 0) bytes.back() = 200;
        put(engine, "seed", bytes);
        put(engine, "own", {static_cast<std::uint8_t>(rank)}, {});
      });
      SCOPED_TRACE(compose("{} bytes, rank {} is odd", size, odd));
      for (const int step : {0, 2})
        expect_difference(failures[static_cast<std::size_t>(step)], "seed", odd == 0 ? 1 : odd, 0);
      for (const int step : {1, 3}) EXPECT_FALSE(failures[static_cast<std::size_t>(step)]) << step;
      expect_all_returned(job.start([](RankScope& scope) {
        Engine engine = scope.make_engine();
        EXPECT_EQ(engine.open(), "3");
        engine.close();
      }));
    }
  }
}

TEST_F(ReplicatedRegions, OfWhichEachRankDiffersNameTwoRanks) {
  const auto failures = commit(job, 1, [](Engine& engine, int rank, int) {
    put(engine, "equal", {7});
    put(engine, "seed", {static_cast<std::uint8_t>(rank)});
  });
  ASSERT_TRUE(failures[0]);
  EXPECT_THAT(failures[0]->message,
              testing::ContainsRegex("region 'seed' .* on rank [1-3] differ from those on rank 0"));
}

/// Equal where they are saved: in any order, and by some ranks or by none.
TEST_F(ReplicatedRegions, ThatSomeRanksSaveAreComparedAmongThem) {
  for (const bool differ : {false, true}) {
    const auto failures = commit(job, 2, [&](Engine& engine, int rank, int step) {
      const std::uint8_t seed = differ && step == 1 && rank == 3 ? 9 : 7;
      if (rank % 2 == 0) put(engine, "a", {1});
      if (rank != 1) put(engine, "seed", {seed});
      if (rank % 2 == 1) put(engine, "a", {1});
      put(engine, "empty", {});
    });
    EXPECT_FALSE(failures[0]) << failures[0]->message;
    if (differ) expect_difference(failures[1], "seed", 3, 0);
    else EXPECT_FALSE(failures[1]) << failures[1]->message;
  }
}

}  // namespace
}  // namespace kedge::faults::replicated_test
