// Damage that is found while a checkpoint is loaded: what the next open does, in this start or in one after it.
#include <gtest/gtest.h>

#include <vector>

#include "harness/restore_job.hpp"

namespace kedge::faults::damage_in_load_test {
namespace {

using namespace restore_job;

TEST(DamageInLoad, AFileThatWasReplacedByAnOlderOneBetweenTwoRestoresIsNoError) {
  for (const bool protects : {false, true}) {
    Job job(protects);
    job.options.store.keep = 2;
    const std::string path = container_of(job.disk, 2, "b");
    const auto older = job.disk.read_all(container_of(job.disk, 2, "a"));
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Variables variables;
      EXPECT_EQ(engine.restore(variables.state()), "b");
      once(engine, scope.rank, [&] {
        job.disk.remove_all(path);
        job.disk.write_all(path, older);
      });
      EXPECT_EQ(engine.restore(variables.state()), protects ? "b" : "a");
      EXPECT_TRUE(variables == Variables::of(scope.rank, protects ? 2 : 1));
    }));
  }
}

/// As a program does that has no loop around open: it fails, and is started again.
TEST(DamageInLoad, TheStartAfterOneThatFoundDamageReadsEveryByte) {
  for (const Verify verify : {Verify::loaded, Verify::headers}) {
    for (const bool protects : {false, true}) {
      SCOPED_TRACE(testing::Message() << "verify " << static_cast<int>(verify) << ", protects " << protects);
      Job job(protects);
      job.options.open.verify = verify;
      const std::string path = container_of(job.disk, 2, "b");
      job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
      const auto load = [](RankScope& scope, Tag& tag) {
        Engine engine = scope.make_engine();
        tag = engine.open().value_or("nothing");
        Variables variables = Variables::of(scope.rank, 0);
        const State state = variables.state();
        for (const State::Item& item : state.items()) (void)engine.load(item.name, item.view().region);
        engine.close();
        EXPECT_TRUE(variables == Variables::of(scope.rank, tag == "a" ? 1 : 2));
      };
      expect_all_failed(job.start([&](RankScope& scope) {
        Tag tag;
        load(scope, tag);
      }),
                        ErrorCode::corrupt);
      std::vector<Tag> tags(kRanks);
      expect_all_returned(
          job.start([&](RankScope& scope) { load(scope, tags[static_cast<std::size_t>(scope.rank)]); }));
      EXPECT_EQ(tags, std::vector<Tag>(kRanks, protects ? "b" : "a"));
      // So does the next, which finds the damaged one there as well, until there is a newer one.
      const std::uint64_t begin = job.disk.bytes_read("/nodes");
      expect_all_returned(
          job.start([&](RankScope& scope) { load(scope, tags[static_cast<std::size_t>(scope.rank)]); }));
      const std::uint64_t all = job.disk.bytes_read("/nodes") - begin;
      expect_all_returned(job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        auto mine = Variables::of(scope.rank, 1);
        engine.checkpoint("a", mine.state());
        engine.finalize();
      }));
      const std::uint64_t before = job.disk.bytes_read("/nodes");
      expect_all_returned(
          job.start([&](RankScope& scope) { load(scope, tags[static_cast<std::size_t>(scope.rank)]); }));
      EXPECT_EQ(tags.front(), "a");
      EXPECT_LT(job.disk.bytes_read("/nodes") - before, all);
    }
  }
}

Status load_large(Engine& engine) {
  std::vector<double> large(kLarge);
  return engine.load("large", {large.data(), DataType::float64, {large.size()}});
}

/// A node whose memory fails would have it rebuilt, and found damaged, for ever.
TEST(DamageInLoad, OneThatIsFoundDamagedTwiceGivesWayToTheOneBefore) {
  Job job(true);
  job.options.store.keep = 2;
  job.options.open.verify = Verify::loaded;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_EQ(engine.open(), "b");
      once(engine, scope.rank, [&] {
        const std::string path = container_of(job.disk, 2, "b");
        job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
      });
      EXPECT_EQ(load_large(engine).ok(), scope.rank != 2);
      EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::corrupt);
    }
    EXPECT_EQ(engine.open(), "a");
    EXPECT_TRUE(load_large(engine).ok());
    engine.close();
  }));
  EXPECT_TRUE(job.logged("it was found damaged while it was loaded"));
}

/// As after every loss: nothing was opened in its place yet.
TEST(DamageInLoad, FilesAreNotRemovedOnPurposeAfterIt) {
  Job job(false);
  job.options.store.on_exit = OnExit::remove;
  job.options.open.verify = Verify::loaded;
  const std::string path = container_of(job.disk, 2, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    EXPECT_EQ(load_large(engine).ok(), scope.rank != 2);
    EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::corrupt);
    EXPECT_EQ(engine.level("b"), Level::none);
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("store.on_exit = remove was not carried out"));
  EXPECT_EQ(restore(job).tag, "a");
}

TEST(DamageInLoad, HeadersAloneRebuildWhatIsFoundDamagedToo) {
  Job job(true);
  job.options.open.verify = Verify::headers;
  const std::string path = container_of(job.disk, 2, "b");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  const Restored restored = restore(job);
  EXPECT_EQ(restored.tag, "b");
  EXPECT_EQ(restored.source, RecoverySource::rebuilt);
}

}  // namespace
}  // namespace kedge::faults::damage_in_load_test
