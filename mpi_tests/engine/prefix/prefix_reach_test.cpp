// A prefix that not every rank reaches, that is unmounted or stale at any moment of a flush, or in pieces: links are
// not followed, containers that changed are not flushed, directories of others are not touched, and each of two notes
// alone says that there were commits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/manifest_rows.hpp"
#include "format/on_disk.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"
#include "persist/unfinished_tags.hpp"

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
  (void)expect_all_failed(outcomes, ErrorCode::io);
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

/// How an unmounted prefix looks to the job: nothing there, an empty mount point, errors; on all ranks or on rank 0.
struct Unmounted {
  std::string name;
  std::string place;
  int read_errno = 0;
  bool on_all = true;
  friend void PrintTo(const Unmounted& one, std::ostream* out) { *out << one.name; }
};

class PrefixUnmounted : public FlushFixture, public testing::WithParamInterface<Unmounted> {
 protected:
  PrefixUnmounted() {
    job.options.persistent.retries = 0;
    job.disk.make_directories("/empty", 0755);
    Volume dead;
    dead.read_errno = dead.write_errno = GetParam().read_errno;
    if (GetParam().read_errno != 0) {
      job.disk.make_directories("/dead", 0755);
      job.disk.set_volume("/dead", dead);
    }
  }
  /// COLLECTIVE.
  void mount(Engine& engine, int rank, const std::string& place) {
    once(engine, rank, [&] {
      for (int each = 0; each < (GetParam().on_all ? 2 : 1); ++each) job.disk.mount(each, "/prefix", place);
    });
  }
  PersistentJob job{2};
};

TEST_P(PrefixUnmounted, CostsFlushesAndEndsWhenItIsBack) {
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    job.options.pipeline.mode = mode;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      engine.wait("a", Level::persistent);
      mount(engine, scope.rank, GetParam().place);
      commit_step(engine, scope.rank, "b", 2);
      const auto failure = failure_of([&] { engine.wait("b", Level::persistent); });
      EXPECT_EQ(failure ? failure->code : ErrorCode::busy, ErrorCode::io) << text_of_failure(failure);
      EXPECT_EQ(engine.level("b"), Level::protected_);
      commit_step(engine, scope.rank, "c", 3);
      mount(engine, scope.rank, "/prefix");
      commit_step(engine, scope.rank, "d", 4);
      engine.wait("d", Level::persistent);
      EXPECT_EQ(engine.level("d"), Level::persistent);
      engine.finalize();
    }));
    const std::vector<Tag> flushed = tags(job);  // perhaps with "c", in the background
    EXPECT_EQ(flushed.front(), "d");
    EXPECT_EQ(flushed.back(), "a");
    EXPECT_EQ(std::ranges::count(flushed, "b"), 0);
    for (const auto& [path, entry] : job.disk.snapshot()) EXPECT_FALSE(path.starts_with("/empty/")) << path;
    EXPECT_EQ(reopen(job).step, 4);
    job.disk.remove_all("/prefix");
    job.disk.remove_all("/nodes");
  }
}

/// Unmounts rank 0's prefix before its n-th look at a name on it.
class UnmountingFileSystem final : public ForwardingFileSystem {
 public:
  UnmountingFileSystem(std::shared_ptr<fs::FileSystem> inner, std::function<void()> look)
      : ForwardingFileSystem(std::move(inner)), look_(std::move(look)) {}
  [[nodiscard]] std::optional<fs::FileStatus> status(const std::string& path) override {
    if (path.starts_with("/prefix")) look_();
    return inner().status(path);
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (path.starts_with("/prefix")) look_();
    return inner().create(path, mode);
  }

 private:
  std::function<void()> look_;
};

/// Nothing that is seen between two looks is taken for another start.
TEST_P(PrefixUnmounted, AtAnyMomentOfAFlush) {
  std::uint64_t left = 0;  // before it is unmounted; 0: it is not. Rank 0's, inline
  job.surroundings = [&](int rank, start::Environment& environment) {
    if (rank != 0) return;
    environment.file_system = std::make_shared<UnmountingFileSystem>(environment.file_system, [&] {
      if (left == 0 || --left != 0) return;
      for (int each = 0; each < (GetParam().on_all ? 2 : 1); ++each) job.disk.mount(each, "/prefix", GetParam().place);
    });
  };
  bool reached_end = false;
  for (std::uint64_t n = 1; !reached_end; ++n) {
    SCOPED_TRACE(n);
    ASSERT_LT(n, 500U);
    job.disk.remove_all("/prefix");
    job.disk.remove_all("/nodes");
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      once(engine, scope.rank, [&] { left = n; });
      commit_step(engine, scope.rank, "b", 2);
      once(engine, scope.rank, [&] { reached_end = std::exchange(left, 0) != 0; });
      mount(engine, scope.rank, "/prefix");
      commit_step(engine, scope.rank, "c", 3);
      EXPECT_EQ(engine.level("c"), Level::persistent);
    }));
    ASSERT_FALSE(HasFailure());
  }
}

/// Also what does without the prefix: the end, and an open, which must not pass over what was discarded.
TEST_P(PrefixUnmounted, AtTheEndItCostsTheLastFlush) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    mount(engine, scope.rank, GetParam().place);
    commit_step(engine, scope.rank, "b", 2);
    const auto failure = failure_of([&] { (void)engine.open(); });
    EXPECT_EQ(failure ? failure->code : ErrorCode::busy, ErrorCode::io) << text_of_failure(failure);
    engine.finalize();
  }));
  EXPECT_TRUE(job.logged("the newest checkpoint, b, is only in the node-local stores"));
  for (int rank = 0; rank < 2; ++rank) job.disk.mount(rank, "/prefix", "/prefix");
  EXPECT_EQ(reopen(job).step, 2);
}

INSTANTIATE_TEST_SUITE_P(Seen, PrefixUnmounted,
                         testing::Values(Unmounted{"gone", "/nowhere"}, Unmounted{"empty", "/empty"},
                                         Unmounted{"stale", "/dead", ESTALE}, Unmounted{"broken", "/dead", EIO},
                                         Unmounted{"on_rank_0", "/nowhere", 0, false},
                                         Unmounted{"empty_on_rank_0", "/empty", 0, false}),
                         [](const auto& one) { return one.param.name; });

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
  persist::RunStart start({file_system, "/prefix", job.options.run});
  (void)start.take_incarnation();
  start.mark_begun({});
  const persist::PrefixStorage prefix =
      persist::posix_prefix_storage(file_system, "/prefix", job.options.persistent, &start);
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
    EXPECT_TRUE(attempt([&] { prefix.writer->begin_commit(entry, 1000, {}); })) << path;
    job.disk.restore(before);
    job.disk.make_directories(path, 0755);
    job.disk.remove_all(path);
    job.disk.make_directories("/elsewhere", 0755);
    job.disk.plant_link(path, "/elsewhere");
    EXPECT_TRUE(attempt([&] { prefix.writer->begin_commit(entry, 1000, {}); })) << path;
  }
}

// --- an old start in the middle of its flush

TEST_F(PrefixReach, ASweepTakesTheUnnamedManifestFirst) {
  PersistentJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto file_system = job.disk.view(0);
  const auto entry = list(job).entries.front();
  const std::string directory = "/prefix/" + entry.directory;
  persist::RunStart old_start({file_system, "/prefix", job.options.run});
  (void)old_start.take_incarnation();
  old_start.mark_begun({});
  persist::UnfinishedTags(old_start).mark(entry.directory);
  file_system->rename(directory + "/checkpoint.h5", directory + "/checkpoint.h5.new");  // about to be renamed back
  persist::RunStart new_start({file_system, "/prefix", job.options.run});
  (void)new_start.take_incarnation();
  new_start.mark_begun({});
  const persist::PrefixStorage prefix =
      persist::posix_prefix_storage(file_system, "/prefix", job.options.persistent, &new_start);
  const auto before = job.disk.snapshot();
  for (std::uint64_t n = 1; n < 20; ++n) {
    job.disk.restore(before);
    job.disk.fail(0, job.disk.operations(0) + n, EIO);
    (void)attempt([&] { (void)prefix.remover->remove_leftovers(entry.commit.run_id); });
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
