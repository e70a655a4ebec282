// A prefix that is full, gone or damaged, at any operation of a flush: the flush alone fails, the same on all ranks;
// files of other ranks, tags and runs are not taken; a prefix that cannot be listed is io.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/on_disk.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::flush_damage_test {
namespace {

class FlushDamage : public FlushFixture {
 protected:
  static constexpr int kRanks = 3;
  /// "a" (step 1) and "b" (step 2) are on the prefix alone.
  FlushDamage() : job(kRanks) {
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.disk.remove_all("/nodes");
  }
  void expect_steps_back(const std::string& what, const std::vector<std::string>& reason) {
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.tag, "a") << what;
    EXPECT_EQ(opened.step, 1) << what;
    for (const std::string& part : reason) EXPECT_TRUE(job.logged(part)) << what << ": " << part;
  }
  PersistentJob job;
};

TEST_F(FlushDamage, AContainerThatIsNotWhatWasFlushedIsSkipped) {
  const std::string path = container_of(job, "b", 1);
  const auto before = job.disk.snapshot();
  job.disk.remove_all(path);
  expect_steps_back("missing", {"could not be recovered", path});
  job.disk.restore(before);
  job.disk.truncate_from_outside(path, 8192);
  expect_steps_back("truncated", {"8192 bytes, but the manifest says"});
  const std::uint64_t bytes = before.at(path).bytes.size();
  for (const std::uint64_t offset : {std::uint64_t{100}, std::uint64_t{5000}, bytes / 2, bytes - 1}) {
    job.disk.restore(before);
    job.disk.flip_bit(path, offset);
    expect_steps_back(compose("bit at {}", offset), {"could not be recovered"});
  }
}

TEST_F(FlushDamage, ContainersOfOtherRanksTagsAndRunsAreNotTaken) {
  const auto before = job.disk.snapshot();
  const std::string path = container_of(job, "b", 1);
  job.disk.write_all(path, before.at(container_of(job, "b", 2)).bytes);
  job.disk.write_all(container_of(job, "b", 2), before.at(path).bytes);
  expect_steps_back("swapped between ranks", {"it is the container of rank 2 of b"});
  job.disk.restore(before);
  job.disk.write_all(path, before.at(container_of(job, "a", 1)).bytes);
  expect_steps_back("of another tag", {"it is the container of rank 1 of a"});
  job.disk.restore(before);
  const std::string run = job.options.run;
  job.options.run = "another";
  reopen(job, latest, Newer::keep, {{"z", 7}});
  const auto foreign = job.disk.read_all(container_of(job, "z", 1));
  job.options.run = run;
  job.disk.restore(before);
  job.disk.write_all(path, foreign);
  expect_steps_back("of another run", {"it is the container of rank 1 of z"});
}

TEST_F(FlushDamage, ADamagedManifestIsSkipped) {
  const std::string path = manifest_of(job, "b");
  const auto before = job.disk.snapshot();
  for (const std::uint64_t offset : {std::uint64_t{70}, std::uint64_t{4095}}) {
    job.disk.flip_bit(path, offset);
    expect_steps_back(compose("bit at {}", offset), {"b (generation"});
    job.disk.restore(before);
  }
  job.disk.truncate_from_outside(path, 5000);
  expect_steps_back("truncated", {"b (generation"});
  job.disk.restore(before);
  job.disk.write_all(path, before.at(manifest_of(job, "a")).bytes);
  expect_steps_back("of another commit", {"this is the manifest of a."});
  job.disk.restore(before);
  job.disk.remove_all(path);
  EXPECT_EQ(reopen(job).tag, "a") << "without a manifest it is no commit";
}

TEST_F(FlushDamage, AManifestOfANewerFormatIsRefusedByName) {
  const std::string path = manifest_of(job, "b");
  auto bytes = job.disk.read_all(path);
  const std::uint32_t newer = 99;
  std::memcpy(bytes.data() + format::manifest_at::kVersion, &newer, sizeof newer);
  const std::uint32_t crc = crc32c(std::span(bytes).first(format::manifest_at::kCrc));
  std::memcpy(bytes.data() + format::manifest_at::kCrc, &crc, sizeof crc);
  job.disk.write_all(path, bytes);
  expect_steps_back("newer", {"99", "newer"});
}

TEST_F(FlushDamage, NothingLeftIsUnrecoverableAndNeverASilentStart) {
  for (const Tag tag : {"a", "b"}) job.disk.flip_bit(container_of(job, tag, 0), 5000);
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  EXPECT_TRUE(says(opened.failure->message, {"a (generation", "b (generation"})) << opened.failure->message;
  // Also when the directories are gone as a whole.
  for (const std::string& directory : directories(job)) job.disk.remove_all("/prefix/" + directory);
  EXPECT_EQ(reopen(job).failure->code, ErrorCode::unrecoverable);
}

TEST_F(FlushDamage, AnUnreachablePrefixIsIo) {
  Volume volume;
  volume.read_errno = ESTALE;
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", volume);
    (void)engine.need_checkpoint();
    (void)engine.open();
  });
  (void)expect_all_failed(outcomes, ErrorCode::io);
  job.disk.set_volume("/prefix", {});
  EXPECT_EQ(reopen(job).tag, "b");
}

TEST_F(FlushDamage, APrefixThatIsGoneCostsTheFlushAlone) {
  Volume gone;
  gone.read_errno = ESTALE;
  gone.write_errno = ESTALE;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", gone);
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "c", 3);  // without an open before it
    EXPECT_EQ(engine.level("c"), Level::protected_);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", {});
    (void)engine.need_checkpoint();
    engine.wait("c", Level::persistent);
  }));
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).tag, "c");
}

TEST_F(FlushDamage, AFullPrefixCostsTheFlushAlone) {
  const std::size_t had = directories(job).size();
  job.disk.set_volume("/prefix", {});  // whose bytes are counted by themselves
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open();
    engine.close();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) {
      Volume volume;
      volume.capacity_bytes = job.disk.used_bytes("/prefix") + 100'000;  // room for one container, not for three
      job.disk.set_volume("/prefix", volume);
    }
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "c", 3);
    EXPECT_EQ(engine.level("c"), Level::protected_);
    const auto failure = attempt([&] { engine.wait("c", Level::persistent); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_TRUE(says(failure->message, {"free", "needed"})) << failure->message;
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", {});
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "d", 4);
    EXPECT_EQ(engine.level("d"), Level::persistent);
  }));
  EXPECT_EQ(directories(job).size(), had + 1);
  EXPECT_TRUE(list(job).unusable_tags.empty());
}

/// A flush on demand in which one operation of one rank fails, each in turn: the same failure on all ranks, the commit
/// as it was, and the next try succeeds.
TEST_F(FlushDamage, AnyOperationOfAFlushMayFail) {
  job.options.persistent.every = 0;
  const auto before = job.disk.snapshot();
  std::uint64_t failed = 0;
  for (const int error : {ENOSPC, EIO}) {
    for (int rank = 0; rank < kRanks; ++rank) {
      for (std::uint64_t n = 1; n < 100; ++n) {
        job.disk.restore(before);
        bool reached = false;
        expect_all_returned(job.start([&](RankScope& scope) {
          Engine engine = scope.make_engine();
          commit_step(engine, scope.rank, "c", 3);
          if (scope.rank == rank) job.disk.fail(rank, job.disk.operations(rank) + n, error);
          const std::uint64_t begin = job.disk.operations(rank);
          (void)engine.need_checkpoint();
          const auto failure = attempt([&] { engine.wait("c", Level::persistent); });
          if (scope.rank == rank) reached = job.disk.operations(rank) >= begin + n;
          if (failure && scope.rank == 0) ++failed;
          if (failure) {
            EXPECT_TRUE(failure->code == ErrorCode::no_space || failure->code == ErrorCode::io);
            EXPECT_EQ(engine.level("c"), Level::protected_);
          }
          (void)engine.need_checkpoint();
          if (scope.rank == rank) job.disk.heal(rank);
          (void)engine.need_checkpoint();
          engine.wait("c", Level::persistent);
          EXPECT_EQ(engine.level("c"), Level::persistent);
        }));
        job.disk.remove_all("/nodes");
        EXPECT_EQ(reopen(job).step, 3) << "rank " << rank << ", operation " << n;
        EXPECT_TRUE(list(job).unusable_tags.empty()) << "rank " << rank << ", operation " << n;
        if (HasFailure() || !reached) break;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(failed, 20U);
}

/// What was found damaged is none of those that persistent.keep asks for: the good one before it stays.
TEST_F(FlushDamage, ADamagedCommitPushesNoGoodOneOut) {
  job.options.persistent.keep = 2;
  job.disk.flip_bit(container_of(job, "b", 1), 5000);
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).step, 1);
  const auto kept = tags(job);
  EXPECT_EQ(std::ranges::count(kept, "c"), 1);
  EXPECT_EQ(std::ranges::count(kept, "a"), 1);
}

TEST_F(FlushDamage, ARemovalThatFailsCostsNoFlushAndIsTriedAgain) {
  job.options.persistent.every = 0;
  job.options.persistent.keep = 1;
  const auto before = job.disk.snapshot();
  bool reached = true;
  for (std::uint64_t n = 1; reached; ++n) {
    SCOPED_TRACE(compose("operation {} of rank 0 fails", n));
    ASSERT_LT(n, 100U);
    job.disk.restore(before);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "c", 3);
      const std::uint64_t begin = job.disk.operations(0);
      if (scope.rank == 0) job.disk.fail(0, begin + n, EIO);
      const auto failure = attempt([&] { engine.wait("c", Level::persistent); });
      EXPECT_EQ(engine.level("c"), failure ? Level::protected_ : Level::persistent);
      if (scope.rank == 0) {
        reached = job.disk.operations(0) >= begin + n;
        job.disk.heal(0);
      }
      (void)engine.need_checkpoint();
      commit_step(engine, scope.rank, "d", 4);
      engine.wait("d", Level::persistent);
    }));
    EXPECT_EQ(tags(job), std::vector<Tag>{"d"});
  }
  EXPECT_TRUE(job.logged("old commits could not be removed from the prefix"));
}

/// The clean-up after a flush that failed may fail as well: then the next flush does it, not only the next start's
/// first.
TEST_F(FlushDamage, WhatAFailedFlushLeftIsSweptByTheNext) {
  constexpr std::uint64_t kLasting = 80;
  job.options.persistent.every = 0;
  const auto before = job.disk.snapshot();
  const auto leftovers = [&] {
    const auto after = job.disk.snapshot();
    return std::ranges::count_if(after, [](const auto& one) { return one.first.starts_with("/prefix/d."); });
  };
  int left = 0;
  for (std::uint64_t n = 1; n <= 20; ++n) {
    SCOPED_TRACE(compose("rank 0's disk is broken from operation {} on", n));
    job.disk.restore(before);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "c", 3);
      engine.wait("c", Level::persistent);
      commit_step(engine, scope.rank, "d", 4);
      if (scope.rank == 0) {
        for (std::uint64_t i = 0; i < kLasting; ++i) job.disk.fail(0, job.disk.operations(0) + n + i, EIO);
      }
      const auto failure = attempt([&] { engine.wait("d", Level::persistent); });
      (void)engine.need_checkpoint();
      if (scope.rank == 0) {
        job.disk.heal(0);
        if (failure && leftovers() != 0) ++left;
      }
      (void)engine.need_checkpoint();
      commit_step(engine, scope.rank, "e", 5);
      engine.wait("e", Level::persistent);
      if (!failure || scope.rank != 0) return;
      EXPECT_EQ(leftovers(), 0);
    }));
  }
  EXPECT_GT(left, 0);
}

}  // namespace
}  // namespace kedge::faults::flush_damage_test
