// restore reads each byte once: damage that shows while it loads is rebuilt, or the commit before is loaded, on all
// ranks alike, and what is older is given up for a commit only when that was found whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>
#include <set>
#include <tuple>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "harness/engine_checks.hpp"
#include "harness/restore_job.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::restore_once_test {
namespace {

using namespace restore_job;
using ::testing::HasSubstr;

std::uint64_t read_by(Job& job, const std::function<void(Engine&, Variables&)>& load) {
  const std::uint64_t before = job.disk.bytes_read("/nodes");
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Variables mine;
    load(engine, mine);
    EXPECT_TRUE(mine == Variables::of(scope.rank, 2));
  }));
  return job.disk.bytes_read("/nodes") - before;
}

TEST(RestoreOnce, ReadsEachByteOnceWhereOpenAndLoadReadItTwice) {
  Job job(false, PipelineMode::inline_, SimulatedJob::block_disk());
  const auto committed = job.disk.snapshot();
  const auto containers = static_cast<double>(bytes_of_containers(job, "b"));
  const auto once = static_cast<double>(
      read_by(job, [](Engine& engine, Variables& mine) { EXPECT_EQ(engine.restore(mine.state()), "b"); }));
  job.disk.restore(committed);
  const auto twice = static_cast<double>(read_by(job, [](Engine& engine, Variables& mine) {
    ASSERT_EQ(engine.open(), "b");
    mine.large.resize(kLarge);
    mine.small.resize(7);
    const State state = mine.state();
    for (const auto& item : state.items()) EXPECT_TRUE(engine.load(item.name, item.view().region).ok());
    engine.close();
  }));
  // Superblocks and indexes of both commits are read beside it.
  EXPECT_LT(once, 1.25 * containers);
  EXPECT_GT(twice, 1.9 * containers);
}

/// Every place of a container, about.
std::vector<std::uint64_t> places_in(const FaultyDisk& disk, const std::string& path) {
  const std::uint64_t size = disk.read_all(path).size();
  std::vector<std::uint64_t> places = {9, 100, 4095, 4096, size - 1};
  for (std::uint64_t at = 4100; at < size; at += size / 24) places.push_back(at);
  return places;
}

using Kind = std::tuple<bool, PipelineMode>;
class RestoreDamaged : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(RestoreOnce, RestoreDamaged,
                         testing::Combine(testing::Bool(),
                                          testing::Values(PipelineMode::inline_, PipelineMode::background)),
                         [](const auto& one) {
                           return compose("{}{}", std::get<0>(one.param) ? "xor" : "alone",
                                          std::get<1>(one.param) == PipelineMode::inline_ ? "" : "Behind");
                         });

TEST_P(RestoreDamaged, AnyByteOfAnyRankIsRebuiltOrTheCommitBeforeIsLoaded) {
  const auto [protects, mode] = GetParam();
  Job job(protects, mode);
  const auto committed = job.disk.snapshot();
  int rank = 0;
  for (const std::uint64_t place : places_in(job.disk, container_of(job.disk, 0, "b"))) {
    rank = (rank + 1) % kRanks;
    SCOPED_TRACE(compose("byte {} of rank {}", place, rank));
    job.disk.restore(committed);
    job.disk.flip_bit(container_of(job.disk, rank, "b"), place);
    const Restored restored = restore(job);
    ASSERT_FALSE(restored.failure) << to_string(*restored.failure);
    EXPECT_EQ(restored.tag, protects ? "b" : "a");
    EXPECT_EQ(restored.source, protects ? RecoverySource::rebuilt : RecoverySource::in_place);
    // It is whole again: the next start finds it so.
    EXPECT_EQ(restore(job).tag, restored.tag);
  }
}

TEST_P(RestoreDamaged, OfAllRanksAtOnceTheCommitBeforeIsLoaded) {
  const auto [protects, mode] = GetParam();
  Job job(protects, mode);
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string path = container_of(job.disk, rank, "b");
    job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  }
  EXPECT_EQ(restore(job).tag, "a");
}

TEST_P(RestoreDamaged, BytesThatCannotBeReadAreAsDamagedOnes) {
  const auto [protects, mode] = GetParam();
  Job job(protects, mode, SimulatedJob::block_disk());
  const std::string path = container_of(job.disk, 2, "b");
  job.disk.make_unreadable(path, job.disk.read_all(path).size() / 2);
  EXPECT_EQ(restore(job).tag, protects ? "b" : "a");
}

TEST_P(RestoreDamaged, ABitThatFlipsRightAfterItWasFoundGoodIsFoundByTheNext) {
  const auto [protects, mode] = GetParam();
  Job job(protects, mode);
  const std::string path = container_of(job.disk, 1, "b");
  job.disk.flip_bit_when_verified(path, job.disk.read_all(path).size() / 2);
  const Restored first = restore(job);
  ASSERT_FALSE(first.failure) << to_string(*first.failure);
  const Restored second = restore(job);
  ASSERT_FALSE(second.failure) << to_string(*second.failure);
  EXPECT_TRUE(second.tag == "b" || !protects) << *second.tag;
}

TEST_P(RestoreDamaged, WhatTheStateDoesNotLoadIsCheckedToo) {
  const auto [protects, mode] = GetParam();
  Job job(protects, mode);
  const std::string path = container_of(job.disk, 3, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);  // in "large"
  std::set<Tag> tags;
  std::mutex mutex;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    int step = 0;
    const auto tag = engine.restore(State().add("step", step));
    const std::lock_guard guard(mutex);
    tags.insert(tag.value_or("nothing"));
    EXPECT_EQ(step, protects ? 2 : 1);
  }));
  EXPECT_THAT(tags, testing::ElementsAre(protects ? "b" : "a"));
}

TEST(RestoreOnce, WhatIsOlderIsNotWrittenOverBeforeTheNewestWasFoundWhole) {
  Job job(true);
  // "c" is not protected, so that whoever opens it protects it again: into what protected the one before.
  job.options.store.keep = 2;
  job.options.redundancy.every = 0;
  expect_all_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    auto mine = Variables::of(scope.rank, 3);
    engine.checkpoint("c", mine.state());
  }));
  job.options.store.keep = 1;
  job.options.redundancy.every = 1;
  for (const auto& [rank, tag] : {std::pair(1, "c"), std::pair(3, "b")}) {
    const std::string path = container_of(job.disk, rank, tag);
    job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  }
  const Restored restored = restore(job);
  EXPECT_FALSE(restored.failure) << to_string(*restored.failure);
  EXPECT_EQ(restored.tag, "b");
  EXPECT_EQ(restored.source, RecoverySource::rebuilt);
}

TEST(RestoreOnce, MuchThatTheStateDoesNotLoadIsCheckedBehindItAndNothingOlderIsGivenUpBefore) {
  constexpr std::size_t kMuch = (std::size_t{17} << 20U) / sizeof(double);
  for (const bool protects : {false, true}) {
    SimulatedJob job(2);
    job.ranks_per_node = 1;
    job.options.redundancy.scheme = Scheme::partner;
    job.options.redundancy.every = protects ? 1 : 0;
    job.options.store.keep = 2;
    const auto commit = [&](Engine& engine, const char* tag, int step) {
      std::vector<double> much(kMuch, step);
      engine.checkpoint(tag, State().add("step", step).add("much", much));
    };
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit(engine, "a", 1);
      commit(engine, "b", 2);
    }));
    job.options.store.keep = 1;
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = true;
    };
    const std::string path = container_of(job.disk, 1, "b");
    job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      int step = 0;
      EXPECT_EQ(engine.restore(State().add("step", step)), "b");
      EXPECT_EQ(step, 2);
    }));
    EXPECT_TRUE(job.logged("found damage in a part of b that this program did not load"));
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      int step = 0;
      std::vector<double> much;
      EXPECT_EQ(engine.restore(State().add("step", step).add("much", much)), protects ? "b" : "a");
      EXPECT_EQ(much, std::vector<double>(kMuch, protects ? 2 : 1));
    }));
  }
}

TEST(RestoreOnce, AFileThatIsCutOffBetweenOpenAndCloseIsAsDamaged) {
  for (const bool protects : {false, true}) {
    Job job(protects);
    job.options.open.verify = Verify::loaded;
    const std::string path = container_of(job.disk, 2, "b");
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
      once(engine, scope.rank, [&] { job.disk.truncate_from_outside(path, 8192); });
      EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::corrupt);
      EXPECT_EQ(engine.open(), protects ? "b" : "a");
      engine.close();
    }));
  }
}

TEST(RestoreOnce, WhereNothingElseIsLeftTheErrorSaysWhatTheVariablesHold) {
  Job job(false);
  for (const char* tag : {"a", "b"}) {
    const std::string path = container_of(job.disk, 1, tag);
    job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  }
  const Restored restored = restore(job);
  ASSERT_TRUE(restored.failure);
  EXPECT_EQ(restored.failure->code, ErrorCode::unrecoverable);
  EXPECT_THAT(restored.failure->message, HasSubstr("the variables still hold data loaded from a damaged checkpoint"));
}

TEST(RestoreOnce, NothingIsGivenUpForACommitThatAnErrorOfTheProgramKeptFromBeingLoaded) {
  Job job(false);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<float> wrong(kLarge);
    EXPECT_EQ(code_of([&] { (void)engine.restore(State().add("large", wrong)); }), ErrorCode::mismatch);
    // It was whole all the same: a program that goes on supersedes it as ever.
    auto mine = Variables::of(scope.rank, 3);
    engine.checkpoint("c", mine.state());
    Variables again;
    EXPECT_EQ(engine.restore(again.state()), "c");
    EXPECT_TRUE(again == mine);
  }));
}

TEST(RestoreOnce, ADamagedOneIsNotGivenUpForAnErrorOfTheProgramOnAnotherRank) {
  Job job(false);
  const std::string path = container_of(job.disk, 1, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Variables mine;
    std::vector<float> wrong(kLarge);
    State state = mine.state();
    if (scope.rank == 0) state.add("large", wrong);
    // Of "a" then, as of "b".
    EXPECT_EQ(code_of([&] { (void)engine.restore(state); }), ErrorCode::mismatch);
  }));
  EXPECT_EQ(restore(job).tag, "a");
}

TEST(RestoreOnce, ProgramsThatOpenAndLoadThemselvesMayAskForIt) {
  for (const bool protects : {false, true}) {
    Job job(protects);
    job.options.open.verify = Verify::loaded;
    const std::string path = container_of(job.disk, 2, "b");
    job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Variables mine;
      mine.large.resize(kLarge);
      mine.small.resize(7);
      const auto load = [&] {
        const State state = mine.state();
        for (const auto& item : state.items()) (void)engine.load(item.name, item.view().region);
        return code_of([&] { engine.close(); });
      };
      EXPECT_EQ(engine.open(), "b");
      EXPECT_EQ(load(), ErrorCode::corrupt);
      EXPECT_EQ(engine.open(), protects ? "b" : "a");
      EXPECT_EQ(load(), std::nullopt);
      EXPECT_TRUE(mine == Variables::of(scope.rank, protects ? 2 : 1));
    }));
  }
}

TEST(RestoreOnce, ACheckpointAfterOneThatWasFoundDamagedCostsNothingThatIsStillGood) {
  Job job(false);
  job.options.open.verify = Verify::loaded;
  const std::string path = container_of(job.disk, 2, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> large(kLarge);
    EXPECT_EQ(engine.open(), "b");
    (void)engine.load("large", {large.data(), DataType::float64, {large.size()}});
    EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::corrupt);
    engine.create("c");
    engine.abandon();
  }));
  EXPECT_EQ(restore(job).tag, "a");
}

}  // namespace
}  // namespace kedge::faults::restore_once_test
