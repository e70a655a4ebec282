// A prefix that not everybody reaches, or in pieces: links, lost mounts, old starts, stores without room.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "format/manifest_rows.hpp"
#include "format/on_disk.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "persist/posix_tier.hpp"
#include "persist/run_records.hpp"

namespace kedge::faults::prefix_reach_test {
namespace {

std::string text_of_failure(const std::optional<Failure>& failure) { return failure ? to_string(*failure) : "success"; }

class PrefixReach : public FlushFixture {};

TEST_F(PrefixReach, LinksInPlaceOfDataDirectoriesAreNotFollowed) {
  PersistentJob job(2);
  job.options.run = "first";
  commit_steps(job, {{"a", 1}});
  const std::string directory = directory_of(job, "a");
  job.disk.make_directories("/elsewhere", 0755);
  for (int rank = 0; rank < 2; ++rank) {
    job.disk.write_all(compose("/elsewhere/rank-{}.h5", rank),
                       job.disk.read_all(compose("{}/data/0/rank-{}.h5", directory, rank)));
  }
  job.disk.remove_all(directory + "/data/0");
  job.disk.plant_link(directory + "/data/0", "/elsewhere");
  job.options.run = "second";
  const Opened opened = reopen(job, Source{"/prefix", "first", "a"});
  EXPECT_TRUE(opened.failure);
  job.options.run = "first";
  job.disk.remove_all("/nodes");
  EXPECT_TRUE(reopen(job).failure);
}

// --- a prefix that cannot be read at the moment

TEST_F(PrefixReach, ARankThatCannotReachThePrefixIsIoAndNotAnOlderCommit) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto older = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.disk.restore(older, "/nodes");
  Volume gone;
  gone.read_errno = ESTALE;
  job.disk.make_directories("/dead", 0755);
  job.disk.set_volume("/dead", gone);
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.need_checkpoint();
    if (scope.rank == 1) job.disk.mount(1, "/prefix", "/dead");
    (void)engine.need_checkpoint();
    const auto tag = engine.open();
    ADD_FAILURE() << "opened " << tag.value_or("nothing");
  });
  (void)expect_all_threw(outcomes, ErrorCode::io);
}

TEST_F(PrefixReach, CreateGoesOnWhileThePrefixIsGoneWithCommitsInTheStores) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  Volume gone;
  gone.read_errno = ESTALE;
  gone.write_errno = ESTALE;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", gone);
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "c", 3);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", {});
  }));
}

TEST_F(PrefixReach, EachOfTheTwoNotesAloneTellsOfCommits) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/nodes");
  job.disk.remove_all(directory_of(job, "a"));
  job.disk.remove_all("/prefix/.kedge/test/tags.jsonl");
  const auto before = job.disk.snapshot();
  for (const std::string note : {"first-commit", "first-master"}) {
    job.disk.restore(before);
    job.disk.remove_all("/prefix/.kedge/test/" + note);
    const Opened opened = reopen(job);
    EXPECT_TRUE(opened.failure && opened.failure->code == ErrorCode::unrecoverable) << "without " << note;
  }
}

TEST_F(PrefixReach, AFlushGoesIntoNoDirectoryOfOthers) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto file_system = job.disk.view(0);
  persist::RunRecords records(file_system, "/prefix", job.options.run);
  (void)records.take_incarnation();
  records.begin_incarnation({});
  persist::PosixTier prefix(file_system, "/prefix", job.options.persistent, &records);
  persist::TagEntry entry = list(job).entries.front();
  const auto before = job.disk.snapshot();
  fs::FileStatus status = before.at(directory_of(job, "a")).status;
  status.owner = 4711;
  status.mode = 0777;
  const std::string directory = "x.5000000-0123abcd";
  entry.directory = directory;
  for (const std::string& path :
       {"/prefix/" + directory, "/prefix/" + directory + "/data", "/prefix/" + directory + "/data/0"}) {
    job.disk.restore(before);
    job.disk.make_directories(path, 0755);
    job.disk.plant(path, status);
    EXPECT_TRUE(attempt([&] { prefix.begin(entry, 1000, {}); })) << path;
    job.disk.restore(before);
    job.disk.make_directories(path, 0755);
    job.disk.remove_all(path);
    job.disk.make_directories("/elsewhere", 0755);
    job.disk.plant_link(path, "/elsewhere");
    EXPECT_TRUE(attempt([&] { prefix.begin(entry, 1000, {}); })) << path;
  }
}

// --- an old start in the middle of its flush

TEST_F(PrefixReach, ASweepTakesTheUnnamedManifestFirst) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto file_system = job.disk.view(0);
  const auto entry = list(job).entries.front();
  const std::string directory = "/prefix/" + entry.directory;
  persist::RunRecords old_records(file_system, "/prefix", job.options.run);
  (void)old_records.take_incarnation();
  old_records.begin_incarnation({});
  old_records.note_unfinished(entry.directory);
  file_system->rename(directory + "/checkpoint.h5", directory + "/checkpoint.h5.new");  // about to be renamed back
  persist::RunRecords new_records(file_system, "/prefix", job.options.run);
  (void)new_records.take_incarnation();
  new_records.begin_incarnation({});
  persist::PosixTier prefix(file_system, "/prefix", job.options.persistent, &new_records);
  const auto before = job.disk.snapshot();
  for (std::uint64_t n = 1; n < 20; ++n) {
    job.disk.restore(before);
    job.disk.fail(0, job.disk.operations(0) + n, EIO);
    (void)attempt([&] { (void)prefix.sweep(entry.commit.run_id); });
    job.disk.heal(0);
    const auto after = job.disk.snapshot();
    const bool whole =
        after.contains(directory + "/data/0/rank-0.h5") && after.contains(directory + "/data/0/rank-1.h5");
    EXPECT_TRUE(whole || !after.contains(directory + "/checkpoint.h5.new")) << "operation " << n;
  }
}

/// A bit flips in a rank's store after the commit: it is not made persistent as if it were good.
TEST_F(PrefixReach, AContainerThatChangedSinceItsCommitIsNotFlushed) {
  PersistentJob job(2);
  job.options.persistent.every = 0;
  commit_steps(job, {{"a", 1}});
  const std::string path = faults::container_of(job.disk, 1, "a");
  const std::uint64_t bytes = job.disk.read_all(path).size();
  for (const std::uint64_t offset : {bytes / 2, bytes - 1}) {
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      engine.close();
      (void)engine.need_checkpoint();
      if (scope.rank == 0) job.disk.flip_bit(path, offset);
      (void)engine.need_checkpoint();
      const auto failure = attempt([&] { engine.wait("a", Level::persistent); });
      EXPECT_TRUE(failure && failure->code == ErrorCode::corrupt) << text_of_failure(failure);
      EXPECT_NE(engine.level("a"), Level::persistent);
      (void)engine.need_checkpoint();
      if (scope.rank == 0) job.disk.flip_bit(path, offset);
    }));
    EXPECT_TRUE(tags(job).empty());
  }
}

// --- waiting for what is not at hand

TEST_F(PrefixReach, WaitForAnOlderCommitWhoseContainerIsNotWithItsOwner) {
  PersistentJob job(3);
  job.options.persistent.every = 0;
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  lose_stores(job, {1});
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    const auto failure = attempt([&] { engine.wait("a", Level::persistent); });
    EXPECT_TRUE(failure || engine.level("a") == Level::persistent);
    engine.wait("b", Level::persistent);
  }));
}

TEST_F(PrefixReach, FetchWithoutRoomInTheStoreIsNoSpaceAndTheNextTrySucceeds) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  job.disk.remove_all("/nodes");
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.need_checkpoint();
    if (scope.rank == 0) {
      Volume volume;
      volume.memory_backed = true;
      volume.capacity_bytes = 150'000;
      job.disk.set_volume("/nodes", volume);
    }
    (void)engine.need_checkpoint();
    const auto failure = attempt([&] { (void)engine.open(); });
    EXPECT_TRUE(failure && failure->code == ErrorCode::no_space) << text_of_failure(failure);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) {
      Volume volume;
      volume.memory_backed = true;
      job.disk.set_volume("/nodes", volume);
    }
    (void)engine.need_checkpoint();
    EXPECT_EQ(engine.open(), "b");
    EXPECT_EQ(load_step(engine, scope.rank), 2);
    engine.close();
  }));
}

}  // namespace
}  // namespace kedge::faults::prefix_reach_test
