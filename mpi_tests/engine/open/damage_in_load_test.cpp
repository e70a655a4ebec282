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
      expect_all_threw(job.start([&](RankScope& scope) {
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
