// How flushes write: no faster than persistent.bandwidth_limit, the way that persistent.io says, and a container that a
// failed attempt left is replaced.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "fs/paced.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {
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
  job.options.topology.ranks_per_node = static_cast<std::uint32_t>(ranks);
  job.options.persistent.every = 1;
  job.options.persistent.bandwidth_limit = limit;
  const auto clock = std::make_shared<FakeClock>();  // of rank 0
  job.surroundings = [&](int rank, engine::Environment& environment) {
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
  fs::Pace pace(clock, 100);
  pace.pass(100);
  EXPECT_EQ(clock.seconds(), 0);
  pace.pass(50);
  EXPECT_EQ(clock.seconds(), 1);
  clock.sleep_for(std::chrono::seconds(10));
  pace.pass(100);
  pace.pass(100);
  EXPECT_EQ(clock.seconds(), 12);
}

/// Tells which files were asked to write past the page cache, and what the probe found.
class Probed final : public ForwardingFileSystem {
 public:
  Probed(std::shared_ptr<fs::FileSystem> inner, std::string probe_of, int& probes)
      : ForwardingFileSystem(std::move(inner)), probe_of_(std::move(probe_of)), probes_(probes) {}
  [[nodiscard]] fs::WriteProbe probe_writes(const fs::ProbePlace& place) override {
    ++probes_;
    EXPECT_EQ(place.storage, fs::ProbePlace::Storage::fresh);
    EXPECT_EQ(place.directory, "/prefix/.kedge/test");
    return {1e9, probe_of_ == "faster" ? 2e9 : 1e9, ""};
  }

 private:
  std::string probe_of_;
  int& probes_;
};

TEST(FlushPace, RankZeroMeasuresOnceHowToWrite) {
  for (const auto& [io, probe, measured, words] : std::vector<std::tuple<Io, std::string, int, std::string>>{
           {Io::automatic, "faster", 1, "go direct"},
           {Io::automatic, "slower", 1, "go through the page cache; measured"},
           {Io::direct, "slower", 1, "go direct"},
           {Io::buffered, "faster", 0, "go through the page cache"}}) {
    PersistentJob job(3);
    job.options.persistent.io = io;
    std::array<int, 3> probes{};
    job.surroundings = [&, probe = probe](int rank, engine::Environment& environment) {
      int& mine = probes.at(static_cast<std::size_t>(rank));
      environment.file_system = std::make_shared<Probed>(environment.file_system, probe, mine);
    };
    expect_all_returned(job.start([&, io = io](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_bytes(engine, "a", 1);
      // Nothing is gained by measuring for so little; but what was asked for is tried.
      if (scope.rank == 0) {
        EXPECT_EQ(probes[0], io == Io::automatic ? 0 : measured);
      }
      commit_bytes(engine, "b", 22 * kMiB);
      commit_bytes(engine, "c", 22 * kMiB);
    }));
    EXPECT_EQ(probes, (std::array<int, 3>{measured, 0, 0})) << words;
    EXPECT_TRUE(job.logged("prefix /prefix: large writes " + words)) << words;
  }
}

}  // namespace
}  // namespace kedge::faults
