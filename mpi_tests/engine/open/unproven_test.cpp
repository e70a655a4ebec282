// A checkpoint of which a large part was not loaded is read behind the application: until it is found whole nothing
// older is given up, the calls that wait for it return whatever that reading meets, and the next checkpoint fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "base/attempt.hpp"
#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::unproven_test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMuch = (std::size_t{17} << 20U) / sizeof(double);  // more than close reads itself

constexpr std::size_t kLittle = 2000;

void commit(Engine& engine, const char* tag, int step, std::size_t count = kMuch) {
  std::vector<double> much(count, step);
  engine.checkpoint(tag, State().add("step", step).add("much", much));
}

/// Two ranks that protect each other. Commits a, b and c; the starts after it work in the background.
struct Job : SimulatedJob {
  explicit Job(std::uint64_t protect_every, std::uint64_t quota_mib = 0, std::size_t count = kMuch) : SimulatedJob(2) {
    ranks_per_node = 1;
    options.redundancy.scheme = Scheme::partner;
    options.redundancy.every = protect_every;
    options.store.keep = 1;
    options.store.quota_bytes = quota_mib << 20U;
    expect_all_returned(start([count](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (const char* tag : {"a", "b", "c"}) commit(engine, tag, 1, count);
    }));
    options.pipeline.mode = PipelineMode::background;
  }
  void flip(const std::string& path) { disk.flip_bit(path, disk.read_all(path).size() / 2); }
};

void restore_a_part(Engine& engine) {
  int step = 0;
  EXPECT_EQ(engine.restore(State().add("step", step)), "c");
}

TEST(UnverifiedContainer, WhoWaitsForProtectionHearsOfTheDamage) {
  Job job(0);
  job.options.redundancy.every = 1;
  job.flip(container_of(job.disk, 1, "c"));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    restore_a_part(engine);
    const auto failure = attempt([&] { engine.wait("c", Level::protected_); });
    ASSERT_TRUE(failure);
    EXPECT_NE(engine.level("c"), Level::protected_);
  }));
  EXPECT_TRUE(job.logged("found damage in a part of c"));
  EXPECT_FALSE(job.logged("is not protected")) << "it is read first: protecting it may take what would rebuild it";
}

TEST(UnverifiedContainer, TheNextCheckpointLooksAtTheStoresAgainAfterTheDamage) {
  Job job(0);
  job.surroundings = [](int, engine::EngineEnvironment& environment) { environment.waits_for_worker = true; };
  job.flip(container_of(job.disk, 1, "c"));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    restore_a_part(engine);
    EXPECT_EQ(engine.level("c"), Level::local);
    engine.create("d");
    engine.abandon();
    EXPECT_EQ(engine.level("c"), Level::none);
  }));
}

TEST(UnverifiedContainer, WhoWaitsForProtectionWithALimitHearsOfTheDamageBefore) {
  Job job(0);
  job.options.redundancy.every = 1;
  job.flip(container_of(job.disk, 1, "c"));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    restore_a_part(engine);
    std::optional<Failure> told;
    engine.on_complete("c", Level::protected_, [&](const std::optional<Failure>& failure) { told = failure; });
    // Throws: it is over, and not reached.
    EXPECT_TRUE(attempt([&] { EXPECT_TRUE(engine.wait_for("c", Level::protected_, std::chrono::seconds(30))); }));
    engine.finalize();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->code, ErrorCode::corrupt) << told->message;
  }));
}

/// Ranks 0 and 2 have changed places. Their parity, of a set that is not whole, stayed where it was: nothing else is
/// left to rebuild what is found damaged, and no protection is made any more.
TEST(UnverifiedContainer, FormerCopiesStayWhereTheContainerIsDamaged) {
  SimulatedJob job(4);
  job.options.redundancy.scheme = Scheme::xor_;
  job.options.redundancy.every = 1;
  job.nodes = {"n0", "n1", "n2", "n3"};
  expect_all_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit(engine, "b", 1);
    commit(engine, "c", 2);
  }));
  job.options.redundancy.scheme = Scheme::single;
  job.options.pipeline.mode = PipelineMode::background;
  job.surroundings = [](int, engine::EngineEnvironment& environment) { environment.waits_for_worker = true; };
  job.nodes = {"n2", "n1", "n0", "n3"};
  const std::string path = container_of(job.disk, 1, "c");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  job.disk.remove_all(set_file_of(job.disk, format::SetFileKind::parity, 1, "c"));
  expect_all_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    restore_a_part(engine);
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("found damage in a part of c"));
  expect_all_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    int step = 0;
    std::vector<double> much;
    EXPECT_EQ(engine.restore(State().add("step", step).add("much", much)), "c");
    EXPECT_EQ(much, std::vector<double>(kMuch, 2));
  }));
}

TEST(UnverifiedContainer, DamagedParityLeavesRoomForTheNextCheckpoint) {
  Job job(1, 76);  // two containers and two parities
  job.surroundings = [](int, engine::EngineEnvironment& environment) { environment.waits_for_worker = true; };
  job.flip(set_file_of(job.disk, format::SetFileKind::parity, 1, "c"));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    restore_a_part(engine);
    for (const char* tag : {"d", "e"}) commit(engine, tag, 2);
  }));
}

TEST(UnverifiedContainer, TheFirstCheckpointWaitsWhereItNeedsTheRoomOfWhatIsOlder) {
  Job job(0, 40);  // two containers
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.pause();  // so that the reading has not been done
    restore_a_part(engine);
    commit(engine, "d", 2);
    engine.resume();
  }));
}

/// Between the look at the files and the first use of them: rank 0 says which was skipped.
TEST(UnverifiedContainer, WhatIsLostBeforeItIsUsedIsRecoveredAgain) {
  for (const bool removed : {true, false}) {
    for (const bool protects : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "removed " << removed << ", protects " << protects);
      Job job(protects ? 1 : 0, 0, kLittle);
      job.options.pipeline.mode = PipelineMode::inline_;
      job.options.store.keep = 3;
      expect_all_returned(job.start([](RankScope& scope) {
        Engine engine = scope.make_engine();
        for (const char* tag : {"d", "e", "f"}) commit(engine, tag, 2, kLittle);
      }));
      const std::string next = container_of(job.disk, 0, "e");
      std::vector<std::string> of_newest = {container_of(job.disk, 0, "f"), container_of(job.disk, 1, "f")};
      if (protects) of_newest.push_back(set_file_of(job.disk, format::SetFileKind::parity, 1, "f"));
      for (const std::string& path : of_newest) job.disk.truncate_from_outside(path, 100);
      bool is_done = false;  // by rank 0, which writes the log
      job.options.log.sink = [&, before = job.options.log.sink](LogLevel level, std::string_view line) {
        before(level, line);
        if (is_done || line.find("skipped an unreadable container") == std::string_view::npos) return;
        is_done = true;
        if (removed) job.disk.remove_all(next);
        else job.disk.truncate_from_outside(next, 8192);
      };
      expect_all_returned(job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        int step = 0;
        std::vector<double> much;
        EXPECT_EQ(engine.restore(State().add("step", step).add("much", much)), protects ? "e" : "d");
        EXPECT_EQ(much, std::vector<double>(kLittle, step));
      }));
    }
  }
}

}  // namespace
}  // namespace kedge::faults::unproven_test
