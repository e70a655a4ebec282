// How flushes write: no faster than persistent.bandwidth_limit, the way that io says, and a container that a
// failed attempt left is replaced.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fs/rate_limiter.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/probed_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::flush_pace_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

/// COLLECTIVE.
void commit_bytes(Engine& engine, const Tag& tag, std::size_t bytes) {
  const std::vector<std::byte> state(bytes, std::byte{7});
  engine.create(tag);
  engine.save("state", {state.data(), DataType::uint8, Shape{state.size()}});
  engine.commit();
}

/// Seconds that pass while `ranks` of one node commit and flush 4 MiB each.
double seconds_of_a_flush(int ranks, std::uint64_t limit) {
  SimulatedJob job(ranks);
  job.ranks_per_node = static_cast<std::uint32_t>(ranks);
  job.options.persistent.every = 1;
  job.options.persistent.bandwidth_limit = limit;
  const auto clock = std::make_shared<FakeClock>();  // of rank 0
  job.surroundings = [&](int rank, start::Environment& environment) {
    environment.clock = rank == 0 ? clock : std::make_shared<FakeClock>();
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_bytes(engine, "a", 4 * kMiB);
  }));
  return clock->seconds();
}

TEST(FlushPace, ANodeWritesNoFasterThanTheLimit) {
  EXPECT_LT(seconds_of_a_flush(2, 0), 1);
  // 4 or 8 MiB at 1 MiB/s, but for the last of a rank's pieces of 1 MiB.
  EXPECT_NEAR(seconds_of_a_flush(1, kMiB), 4, 0.5);
  EXPECT_NEAR(seconds_of_a_flush(2, kMiB), 8, 0.5);
}

TEST(FlushPace, TimeThatNothingWasWrittenIsNotMadeUpFor) {
  FakeClock clock;
  fs::RateLimiter pace(clock, 100);
  pace.acquire(100);
  EXPECT_EQ(clock.seconds(), 0);
  pace.acquire(50);
  EXPECT_EQ(clock.seconds(), 1);
  clock.sleep_for(std::chrono::seconds(10));
  pace.acquire(100);
  pace.acquire(100);
  EXPECT_EQ(clock.seconds(), 12);
}

TEST(FlushPace, RankZeroMeasuresOnceHowAllRanksWrite) {
  struct Case {
    Io io;
    double direct_bytes_per_s;
    int measured;
    bool direct;
    std::string words;
  };
  for (const Case& one : {Case{Io::automatic, 2e9, 1, true, "go direct, past the page cache; measured"},
                          Case{Io::automatic, 1e9, 1, false, "go through the page cache; measured"},
                          Case{Io::direct, 1e9, 1, true, "go direct, past the page cache; measured"},
                          Case{Io::buffered, 2e9, 0, false, "go through the page cache"}}) {
    PersistentJob job(3);
    job.options.io = one.io;
    std::array<std::shared_ptr<Probed>, 3> systems;
    job.surroundings = [&](int rank, start::Environment& environment) {
      auto& mine = systems.at(static_cast<std::size_t>(rank));
      mine = std::make_shared<Probed>(environment.file_system, fs::WriteProbe{1e9, one.direct_bytes_per_s, ""});
      environment.file_system = mine;
    };
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const Probed& mine = *systems.at(static_cast<std::size_t>(scope.rank));
      commit_bytes(engine, "a", 1);
      // Nothing is gained by measuring for so little; but what was asked for is tried.
      EXPECT_EQ(mine.probes, scope.rank == 0 && one.io != Io::automatic ? one.measured : 0);
      commit_bytes(engine, "b", 22 * kMiB);
      commit_bytes(engine, "c", 22 * kMiB);
      EXPECT_EQ(mine.probes, scope.rank == 0 ? one.measured : 0);
      EXPECT_EQ(mine.direct, !one.direct ? 0 : one.io == Io::automatic ? 2 : 3) << scope.rank;  // containers
    }));
    EXPECT_TRUE(job.logged("prefix /prefix: large writes " + one.words)) << one.words;
    if (one.measured == 0) continue;
    EXPECT_EQ(systems[0]->probed.storage, fs::ProbeTarget::Storage::fresh);
    EXPECT_EQ(systems[0]->probed.directory, "/prefix/.kedge/test");
  }
}

}  // namespace
}  // namespace kedge::faults::flush_pace_test
