// What a prefix may not be led to: commits ignored, removed or trusted for the wrong reason; pins survive a power loss,
// files of other users are trusted only as persistent.trust says.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "commits/head_check.hpp"
#include "format/manifest_rows.hpp"
#include "format/on_disk.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "persist/run_record.hpp"

namespace kedge::faults::prefix_attack_test {
namespace {

class PrefixAttack : public FlushFixture {
 protected:
  /// A copy of a tag directory as another commit of the same run: another generation, owned by `owner`.
  static void plant(SimulatedJob& job, const Tag& tag, std::uint64_t generation, std::uint32_t owner) {
    const std::string from = directory_of(job, tag);
    const auto snapshot = job.disk.snapshot();
    auto manifest = snapshot.at(manifest_of(job, tag)).bytes;
    format::ManifestHead head = format::decode_manifest_head(manifest, "planted");
    head.commit.generation = generation;
    const auto bytes = format::encode_manifest_head(head);
    std::ranges::copy(bytes, manifest.begin());
    const std::string to = "/prefix/" + persist::tag_directory_name(head.commit);
    job.disk.make_directories(to, 0755);
    job.disk.write_all(to + "/checkpoint.h5", manifest);
    for (const std::string& path : {to, to + "/checkpoint.h5"}) {
      fs::FileStatus status = job.disk.snapshot().at(path).status;
      status.owner = owner;
      status.mode = path == to ? 0755 : 0644;
      job.disk.plant(path, status);
    }
    const auto planted = list(job);
    EXPECT_EQ(planted.entries.front().commit.generation, generation);
    for (const auto& one : planted.unusable_tags) ADD_FAILURE() << one.directory << ": " << one.reason;
  }
};

// --- damage that is known and yet believed

TEST_F(PrefixAttack, AManifestKnownToBeDamagedIsNotCalledPersistent) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.disk.flip_bit(manifest_of(job, "b"), 70);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    EXPECT_NE(engine.level("b"), Level::persistent);
    engine.wait("b", Level::persistent);
    EXPECT_EQ(engine.level("b"), Level::persistent);
  }));
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).tag, "b");
}

TEST_F(PrefixAttack, StoresAreNotRemovedForTheSakeOfADamagedManifestOrMissingContainers) {
  for (const bool missing : {false, true}) {
    PersistentJob job(2);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    if (missing) job.disk.remove_all(container_of(job, "b", 1));
    else job.disk.flip_bit(manifest_of(job, "b"), 70);
    job.options.store.on_exit = OnExit::remove_if_persistent;
    job.options.persistent.every = 0;  // finalize does not write it anew
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
      engine.close();
      engine.finalize();
    }));
    EXPECT_EQ(reopen(job).tag, "b") << missing;
  }
}

// --- persistent.keep

TEST_F(PrefixAttack, DiscardedCommitsAreNotAmongThoseThatAreKept) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  job.options.persistent.keep = 2;
  reopen(job, Tag("a"), Newer::discard, {{"d", 4}});
  job.disk.remove_all("/nodes");
  job.disk.flip_bit(container_of(job, "d", 0), 5000);
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "a") << (opened.failure ? to_string(*opened.failure) : "");
}

TEST_F(PrefixAttack, DamagedManifestsAreNotAmongThoseThatAreKept) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.options.persistent.keep = 2;
  job.disk.flip_bit(manifest_of(job, "b"), 70);
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).tag, "a");
  job.disk.remove_all("/nodes");
  job.disk.flip_bit(container_of(job, "c", 0), 5000);
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "a") << (opened.failure ? to_string(*opened.failure) : "");
}

TEST_F(PrefixAttack, OthersDirectoriesAreNotAmongThoseThatAreKept) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  plant(job, "a", 1'500'000'000, 4711);
  plant(job, "b", 1'500'000'001, 4711);
  job.options.persistent.keep = 2;
  reopen(job, latest, Newer::keep, {{"c", 3}});
  job.disk.remove_all("/nodes");
  job.disk.flip_bit(container_of(job, "c", 0), 5000);
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "b") << (opened.failure ? to_string(*opened.failure) : "");
}

TEST_F(PrefixAttack, WhatKeepRemovedIsNotCalledPersistent) {
  PersistentJob job(2);
  job.options.persistent.keep = 1;
  job.options.store.keep = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_NE(engine.level("a"), Level::persistent);
    engine.wait("a", Level::persistent);
  }));
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job, Tag("a")).tag, "a");
}

TEST_F(PrefixAttack, PinMeansWhatOpenWouldTake) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}, {"a", 3}});
  plant(job, "a", 1'500'000'000, 4711);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Before{"b"}, Newer::discard), "a");
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    engine.pin("a");
  }));
  std::vector<std::uint64_t> pinned;
  for (const auto& entry : list(job).entries) {
    if (entry.pinned) pinned.push_back(entry.commit.generation);
  }
  EXPECT_EQ(pinned, std::vector<std::uint64_t>{1'000'001});
}

TEST_F(PrefixAttack, APinSurvivesPowerLoss) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    PersistentJob job(2, SimulatedJob::block_disk());
    expect_all_returned(job.start(
        [&](RankScope& scope) {
          Engine engine = scope.make_engine();
          commit_step(engine, scope.rank, "a", 1);
          engine.pin("a");
        },
        Crash::power, seed));
    EXPECT_TRUE(list(job).entries.front().pinned) << "seed " << seed;
  }
}

// --- planted generations

TEST_F(PrefixAttack, AnothersGenerationDoesNotCount) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  plant(job, "a", commits::kGenerationMax, 4711);
  job.options.persistent.every = 0;
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, "a");
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "b") << (opened.failure ? to_string(*opened.failure) : "");
}

TEST_F(PrefixAttack, AnothersDirectoryDoesNotStopAStartWithoutRecords) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  plant(job, "a", 1'500'000'000, 4711);
  job.disk.remove_all("/nodes");
  job.disk.remove_all("/prefix/.kedge");
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "a") << (opened.failure ? to_string(*opened.failure) : "");
}

/// Who a run is, if all records of it are lost, is taken from no manifest that open would not take: one of this user's
/// stops the start, so that it can be mended; another's is as good as none.
TEST_F(PrefixAttack, AStartWithoutRecordsTrustsNoManifestThatOpenWouldNot) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/nodes");
  job.disk.remove_all("/prefix/.kedge");
  const auto before = job.disk.snapshot();
  const std::string directory = directory_of(job, "a");
  const auto start_with = [&](std::uint32_t mode, std::uint32_t owner) {
    job.disk.restore(before);
    fs::FileStatus status = before.at(directory).status;
    status.mode = mode;
    status.owner = owner;
    job.disk.plant(directory, status);
    return job.start([](RankScope& scope) { (void)scope.make_engine(); });
  };
  const auto own = start_with(0775, before.at(directory).status.owner);
  for (const auto& outcome : own) {
    EXPECT_TRUE(outcome.failure && says(to_string(*outcome.failure), {"persistent.trust", "a."}));
  }
  expect_all_returned(start_with(0775, 4711));
}

// --- trust: each of what is read is judged, not only the directory or only the manifest

TEST_F(PrefixAttack, EachOfASourcesFilesMustBeTrusted) {
  PersistentJob job(2);
  job.options.run = "first";
  commit_steps(job, {{"a", 1}});
  job.options.run = "second";
  const auto before = job.disk.snapshot();
  for (const std::string& path : {directory_of(job, "a"), manifest_of(job, "a"), container_of(job, "a", 1)}) {
    fs::FileStatus status = before.at(path).status;
    status.owner = 4711;
    status.mode |= 0044U;
    job.disk.plant(path, status);
    job.options.persistent.trust = Trust::self;
    const Opened refused = reopen(job, Source{"/prefix", "first", "a"});
    EXPECT_TRUE(refused.failure && says(to_string(*refused.failure), {"persistent.trust", path})) << path;
    job.options.persistent.trust = Trust::any;
    EXPECT_EQ(reopen(job, Source{"/prefix", "first", "a"}).tag, "a") << path;
    job.disk.restore(before);
  }
}

TEST_F(PrefixAttack, ThisRunsDirectoriesMustBeTrusted) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/nodes");
  fs::FileStatus status = job.disk.snapshot().at(directory_of(job, "a")).status;
  status.mode = 0775;
  job.disk.plant(directory_of(job, "a"), status);
  const Opened refused = reopen(job);
  EXPECT_TRUE(refused.failure && says(to_string(*refused.failure), {"persistent.trust", "a."}));
  job.options.persistent.trust = Trust::group;
  EXPECT_EQ(reopen(job).tag, "a");
}

// --- sources

TEST_F(PrefixAttack, ASourceThatIsDamagedSaysNothingAboutTheStores) {
  PersistentJob job(2);
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.disk.flip_bit(container_of(job, "b", 1), 100);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Source{"/prefix", job.options.run, "latest"}), "a");
    engine.close();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
  }));
  EXPECT_EQ(reopen(job).tag, "b");
}

TEST_F(PrefixAttack, ASourceIsFoundBelowManyThatDoNotFit) {
  PersistentJob job(2);
  job.options.open.other_ranks = OtherRanks::refuse;
  job.options.run = "first";
  commit_steps(job, {{"a", 1}});
  job.ranks = 3;
  Steps many;
  for (int i = 0; i < 17; ++i) many.emplace_back(compose("s{}", i), i);
  job.disk.remove_all("/nodes");
  job.options.run = "wide";
  commit_steps(job, many);
  job.ranks = 2;
  job.options.run = "second";
  const Opened opened = reopen(job, Source{"/prefix", "", "latest"});
  EXPECT_EQ(opened.tag, "a") << (opened.failure ? to_string(*opened.failure) : "");
}

TEST_F(PrefixAttack, ACopyWithADamagedManifestIsNamed) {
  PersistentJob job(2);
  job.options.run = "first";
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const std::string newer = manifest_of(job, "b");
  job.disk.flip_bit(newer, 70);
  job.disk.remove_all("/prefix/.kedge/first/tags.jsonl");
  job.options.run = "second";
  const Opened opened = reopen(job, Source{"/prefix", "first", "b"});
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable) << to_string(*opened.failure);
  EXPECT_EQ(reopen(job, Source{"/prefix", "first", "latest"}).tag, "a");
  EXPECT_TRUE(job.logged("skipped")) << "for " << newer;
  // Damage is not reported for a tag that the prefix does not have, nor for a flush that was cut short.
  job.disk.make_directories("/prefix/c.9-01234567", 0755);
  for (const Tag tag : {"other", "c"}) {
    const Opened missing = reopen(job, Source{"/prefix", "first", tag});
    ASSERT_TRUE(missing.failure);
    EXPECT_EQ(missing.failure->code, ErrorCode::not_found) << to_string(*missing.failure);
  }
}

/// A shared directory with the sticky bit: nobody can put another directory in a tag directory's place.
TEST_F(PrefixAttack, ASourcesParentMayBelongToAnybodyIfOthersCannotReplaceWhatIsInIt) {
  PersistentJob job(2);
  fs::FileStatus status = job.disk.snapshot().at("/prefix").status;
  const auto give_to = [&](std::uint32_t owner, std::uint32_t mode) {
    status.owner = owner;
    status.group = 77;
    status.mode = mode;
    job.disk.plant("/prefix", status);
  };
  give_to(0, 01777);
  job.options.run = "first";
  commit_steps(job, {{"a", 1}});
  job.options.run = "second";
  const auto opens = [&](Trust trust) {
    job.options.persistent.trust = trust;
    return reopen(job, Source{"/prefix", "first", "a"}).tag == "a";
  };
  EXPECT_TRUE(opens(Trust::self));
  give_to(0, 01775);
  EXPECT_TRUE(opens(Trust::self));
  give_to(1000, 0775);
  EXPECT_FALSE(opens(Trust::self));
  EXPECT_TRUE(opens(Trust::group));
}

TEST_F(PrefixAttack, RemoveOnExitLeavesThePrefix) {
  PersistentJob job(2);
  job.options.store.on_exit = OnExit::remove;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.finalize();
  }));
  EXPECT_EQ(reopen(job).tag, "a");
}

}  // namespace
}  // namespace kedge::faults::prefix_attack_test
