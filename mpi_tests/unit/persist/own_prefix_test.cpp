// The prefix as its own run changes it: what outlives a power loss, what is swept, and what stays because it is not
// ours.
#include <gmock/gmock.h>

#include <cerrno>
#include <functional>
#include <memory>

#include "harness/faulty_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/unfinished_tags.hpp"
#include "unit/persist/prefix_start.hpp"
#include "unit/persist/support.hpp"

namespace kedge::faults::own_prefix_test {
namespace {

using persist::testing::PrefixStart;
using persist::testing::sample_commit;
using persist::testing::SampleCommit;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Rank 0's tier of one start of a run.
class OwnPrefix : public Faulty {
 protected:
  void SetUp() override {
    Faulty::SetUp();
    make_prefix();
  }
  void make_prefix() {
    disk.remove_all("/prefix");
    disk.restart();
    disk.make_directories("/prefix", 0755);
  }
  [[nodiscard]] std::unique_ptr<PrefixStart> start() const {
    return std::make_unique<PrefixStart>(system, Options::Persistent{});
  }
  [[nodiscard]] std::vector<persist::TagEntry> catalog(const PrefixStart& start) const {
    return persist::TagCatalog(*system, start.start.directory().path()).read();
  }
  static std::string path_of(const SampleCommit& commit, const std::string& name = {}) {
    return "/prefix/" + commit.entry.directory + (name.empty() ? "" : "/" + name);
  }
  [[nodiscard]] bool exists(const std::string& path) const { return system->status(path).has_value(); }
  void give_away(const std::string& path, std::uint32_t owner) {
    fs::FileStatus status = *system->status(path);
    status.owner = owner;
    disk.plant(path, status);
  }
  void plant(const std::string& path) { disk.write_all(path, bytes_of(10, 'x')); }
  [[nodiscard]] std::string text_of(const std::string& path) const {
    const auto bytes = disk.read_all(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static void bring(const persist::PrefixStorage& prefix_storage, const SampleCommit& commit) {
    prefix_storage.writer->begin_commit(commit.entry, commit.manifest.size(), {});
    for (std::uint32_t rank = 0; rank < commit.containers.size(); ++rank) {
      format::testing::MemoryFile file(commit.containers[rank]);
      (void)prefix_storage.writer->put_container(commit.entry, {rank}, {file, file.size()});
    }
  }
  static void publish(const persist::PrefixStorage& prefix_storage, const SampleCommit& commit) {
    bring(prefix_storage, commit);
    EXPECT_EQ(prefix_storage.writer->publish(commit.entry, commit.manifest), "");
  }
  [[nodiscard]] bool is_whole(const SampleCommit& commit) const {
    const persist::PrefixStorage prefix_storage = persist::posix_prefix_storage(system, "/prefix", {}, nullptr);
    return !failure_of([&] {
      for (std::uint32_t rank = 0; rank < commit.containers.size(); ++rank) {
        const auto opened = prefix_storage.reader->open_container(commit.entry.directory, commit.entry.commit, {rank});
        if (!opened.reader->verify().empty()) throw Error(ErrorCode::corrupt, "damaged");
      }
    });
  }
};

TEST_F(OwnPrefix, APublishLeavesACatalogLatestAndNoWorkWhateverAnEarlierOneLeft) {
  const SampleCommit commit = sample_commit(1);
  const auto mine = start();
  bring(mine->prefix_storage, commit);
  plant(path_of(commit, "checkpoint.h5.new"));
  plant("/prefix/.latest.heat.new");
  EXPECT_EQ(mine->prefix_storage.writer->publish(commit.entry, commit.manifest), "");
  EXPECT_TRUE(is_whole(commit));
  EXPECT_THAT(catalog(*mine), ElementsAre(commit.entry));
  EXPECT_EQ(text_of("/prefix/latest"), commit.entry.directory + "\n");
  EXPECT_THAT(persist::UnfinishedTags(mine->start).list(), IsEmpty());
}

TEST_F(OwnPrefix, WhatWasPublishedOutlivesAPowerLossAndLatestIsNeverTorn) {
  const SampleCommit commit = sample_commit(1);
  for (const bool latest : {true, false}) {  // writing it syncs names by the way; it may fail
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      make_prefix();
      if (!latest) disk.make_directories("/prefix/latest");
      const auto mine = start();
      bring(mine->prefix_storage, commit);
      EXPECT_EQ(mine->prefix_storage.writer->publish(commit.entry, commit.manifest).empty(), latest);
      EXPECT_FALSE(exists("/prefix/.latest.heat.new")) << "seed " << seed;
      disk.restart(Crash::power, seed);
      EXPECT_TRUE(is_whole(commit)) << "seed " << seed;
      if (latest) {
        EXPECT_EQ(text_of("/prefix/latest"), commit.entry.directory + "\n") << "seed " << seed;
      }
    }
  }
}

TEST_F(OwnPrefix, APowerLossAnywhereInAPublishLeavesTheWholeCommitOrNone) {
  const SampleCommit commit = sample_commit(1);
  bool died = true;
  for (std::uint64_t stop = 1; died; ++stop) {
    ASSERT_LT(stop, 60U) << "the publish never came to its end";
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      make_prefix();
      const auto mine = start();
      bring(mine->prefix_storage, commit);
      disk.stop_world_after(0, disk.operations(0) + stop, seed);
      died = dies([&] { (void)mine->prefix_storage.writer->publish(commit.entry, commit.manifest); });
      disk.restart(Crash::power, seed);
      EXPECT_TRUE(is_whole(commit) || !exists(path_of(commit, "checkpoint.h5"))) << stop << ", seed " << seed;
    }
  }
}

/// Whoever says that it is complete may be the second to try: the first may have failed before its name was durable.
TEST_F(OwnPrefix, WhatIsCalledCompleteOutlivesAPowerLoss) {
  const SampleCommit commit = sample_commit(1);
  int complete = 0;
  for (std::uint64_t n = 1; n <= 40; ++n) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      make_prefix();
      const auto mine = start();
      bring(mine->prefix_storage, commit);
      disk.fail(0, disk.operations(0) + n, EIO);
      const bool failed =
          failure_of([&] { (void)mine->prefix_storage.writer->publish(commit.entry, commit.manifest); }).has_value();
      disk.heal(0);
      if (!failed || !mine->prefix_storage.writer->is_complete(commit.entry)) continue;
      ++complete;
      disk.restart(Crash::power, seed);
      EXPECT_TRUE(is_whole(commit)) << "operation " << n << ", seed " << seed;
    }
  }
  EXPECT_GT(complete, 0);
}

TEST_F(OwnPrefix, CompleteIsOnlyThisCommitWhereNobodyElseCanChangeIt) {
  const SampleCommit commit = sample_commit(1);
  const auto mine = start();
  publish(mine->prefix_storage, commit);
  EXPECT_TRUE(mine->prefix_storage.writer->is_complete(commit.entry));
  persist::TagEntry other = commit.entry;
  other.commit.id.bytes[15] ^= 1;  // not in the directory's name
  EXPECT_FALSE(mine->prefix_storage.writer->is_complete(other));
  give_away(path_of(commit), 4711);
  EXPECT_TRUE(failure_of([&] { (void)mine->prefix_storage.writer->is_complete(commit.entry); }));
  give_away(path_of(commit), 1000);
  disk.remove_all(path_of(commit, "checkpoint.h5"));
  disk.plant_link(path_of(commit, "checkpoint.h5"), "/secret");
  EXPECT_TRUE(failure_of([&] { (void)mine->prefix_storage.writer->is_complete(commit.entry); }))
      << "not to be written over";
}

TEST_F(OwnPrefix, ACommitThatTheCatalogIsWrongAboutPushesOutNoOlderOne) {
  const SampleCommit older = sample_commit(1);
  const SampleCommit newer = sample_commit(2);
  const auto mine = start();
  for (const SampleCommit& commit : {older, newer}) publish(mine->prefix_storage, commit);
  persist::TagEntry wrong = newer.entry;
  wrong.commit.id.bytes[15] ^= 1;  // not in the directory's name
  persist::TagCatalog(*system, mine->start.directory().path()).add(wrong);
  ASSERT_THAT(mine->prefix_storage.reader->list_commits().entries, ElementsAre(wrong, older.entry));
  const persist::PrefixRetention retention{older.entry.commit.run_id, 1, {}, {}};
  persist::PrefixCommitList history;
  EXPECT_THAT(
      persist::retract_old_commits(mine->prefix_storage, persist::PrefixMarkers(mine->start), history, retention)
          .retracted,
      IsEmpty());
  EXPECT_TRUE(is_whole(older));
}

TEST_F(OwnPrefix, RoomIsNeededForTheManifestAndForEveryFile) {
  const SampleCommit commit = sample_commit(1);
  const auto mine = start();
  Volume bytes;
  bytes.capacity_bytes = disk.used_bytes("/prefix") + commit.entry.total_bytes + 5;
  Volume files;
  files.capacity_inodes = 1;  // and those that are in use
  for (const auto& [path, entry] : disk.snapshot()) files.capacity_inodes += path.starts_with("/prefix") ? 1U : 0U;
  for (const Volume& small : {bytes, files}) {
    disk.set_volume("/prefix", small);
    const auto failure = failure_of([&] { mine->prefix_storage.writer->begin_commit(commit.entry, 10, {}); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_FALSE(exists(path_of(commit)));
    EXPECT_THAT(persist::UnfinishedTags(mine->start).list(), IsEmpty());
  }
}

TEST_F(OwnPrefix, ARemovalOrDiscardLeavesNothingOfKedgesAndAllThatIsNot) {
  const auto mine = start();
  for (const bool published : {true, false}) {
    const SampleCommit plain = sample_commit(1);
    const SampleCommit crowded = sample_commit(2);
    for (const SampleCommit& commit : {plain, crowded}) {
      if (published) publish(mine->prefix_storage, commit);
      else bring(mine->prefix_storage, commit);
      if (published) mine->prefix_storage.remover->set_pinned(commit.entry, true);
    }
    const std::vector<std::string> foreign = {"notes", "data/readme", "data/0/notes.h5", "data/0/rank-0.h5.bak"};
    for (const std::string& name : foreign) plant(path_of(crowded, name));
    for (const SampleCommit& commit : {plain, crowded}) {
      if (published) mine->prefix_storage.remover->remove_commit(commit.entry);
      else mine->prefix_storage.remover->discard_unpublished(commit.entry);
    }
    EXPECT_FALSE(exists(path_of(plain)));
    for (const std::string& name : foreign) EXPECT_TRUE(exists(path_of(crowded, name))) << name;
    for (const char* name : {"checkpoint.h5", "pinned", "data/0/rank-0.h5"}) {
      EXPECT_FALSE(exists(path_of(crowded, name))) << name;
    }
    EXPECT_THAT(catalog(*mine), IsEmpty());
    EXPECT_THAT(persist::UnfinishedTags(mine->start).list(), IsEmpty());
    disk.remove_all(path_of(crowded));
  }
}

TEST_F(OwnPrefix, ARemovalTouchesNothingOfOthersAndNoFileInADirectorysPlace) {
  const SampleCommit commit = sample_commit(1);
  const auto mine = start();
  publish(mine->prefix_storage, commit);
  give_away(path_of(commit), 4711);
  mine->prefix_storage.remover->remove_commit(commit.entry);
  EXPECT_TRUE(exists(path_of(commit, "checkpoint.h5")));
  disk.remove_all(path_of(commit));
  mine->prefix_storage.remover->remove_commit(commit.entry);
  disk.make_directories("/d/elsewhere", 0755);
  plant("/d/elsewhere/checkpoint.h5");
  disk.plant_link(path_of(commit), "/d/elsewhere");
  EXPECT_FALSE(failure_of([&] { mine->prefix_storage.remover->remove_commit(commit.entry); }));
  EXPECT_TRUE(exists("/d/elsewhere/checkpoint.h5"));
}

TEST_F(OwnPrefix, APowerLossAnywhereInARemovalLeavesTheWholeCommitOrNone) {
  const SampleCommit commit = sample_commit(1);
  bool died = true;
  for (std::uint64_t stop = 1; died; ++stop) {
    ASSERT_LT(stop, 60U) << "the removal never came to its end";
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      make_prefix();
      const auto mine = start();
      publish(mine->prefix_storage, commit);
      disk.stop_world_after(0, disk.operations(0) + stop, seed);
      died = dies([&] { mine->prefix_storage.remover->remove_commit(commit.entry); });
      disk.restart(Crash::power, seed);
      const auto next = start();
      EXPECT_TRUE(is_whole(commit) || !next->prefix_storage.reader->is_published(commit.entry.directory))
          << stop << ", seed " << seed;
      EXPECT_THAT(next->prefix_storage.remover->remove_leftovers(commit.entry.commit.run_id), IsEmpty());
      EXPECT_EQ(exists(path_of(commit)), is_whole(commit)) << stop << ", seed " << seed;
    }
  }
}

TEST_F(OwnPrefix, ASweepSparesWhatIsPublishedAndWhatIsNoTagDirectory) {
  const SampleCommit commit = sample_commit(1);
  const SampleCommit lost = sample_commit(2);
  {
    const auto before = start();
    publish(before->prefix_storage, commit);
    persist::UnfinishedTags(before->start).mark(commit.entry.directory);  // it died before it could forget it
    persist::UnfinishedTags(before->start).mark("results");
    bring(before->prefix_storage, lost);
  }
  disk.make_directories("/prefix/results/data/0", 0755);
  plant("/prefix/results/data/0/rank-0.h5");
  disk.remove_all("/prefix/.kedge/heat/tags.jsonl");
  const auto mine = start();
  EXPECT_THAT(mine->prefix_storage.remover->remove_leftovers(commit.entry.commit.run_id), IsEmpty());
  EXPECT_TRUE(is_whole(commit));
  EXPECT_TRUE(exists("/prefix/results/data/0/rank-0.h5"));
  EXPECT_FALSE(exists(path_of(lost)));
  EXPECT_THAT(persist::UnfinishedTags(mine->start).list(), ElementsAre("results"));
  EXPECT_THAT(catalog(*mine), ElementsAre(commit.entry)) << "the cache is completed";
}

/// An old start that passed its check may rename the manifest that it wrote, while the containers go.
TEST_F(OwnPrefix, AManifestThatIsNotNamedYetGoesBeforeTheContainers) {
  const SampleCommit commit = sample_commit(1);
  bring(start()->prefix_storage, commit);
  plant(path_of(commit, "checkpoint.h5.new"));
  const auto mine = start();
  EXPECT_EQ(mine->prefix_storage.remover->find_leftovers(commit.entry.commit.run_id).commits.size(), 1U);
  EXPECT_FALSE(exists(path_of(commit, "checkpoint.h5.new")));
  EXPECT_TRUE(exists(path_of(commit, "data/0/rank-0.h5")));
}

TEST_F(OwnPrefix, ASweepSaysWhatItCouldNotRemoveAndTheNextOneTriesAgain) {
  const SampleCommit commit = sample_commit(1);
  int told = 0;
  for (std::uint64_t n = 1; n <= 12; ++n) {
    make_prefix();
    bring(start()->prefix_storage, commit);
    const auto mine = start();
    disk.fail(0, disk.operations(0) + n, EIO);
    const std::vector<std::string> left = mine->prefix_storage.remover->remove_leftovers(commit.entry.commit.run_id);
    disk.heal(0);
    EXPECT_EQ(left.empty(), persist::UnfinishedTags(mine->start).list().empty()) << "operation " << n;
    told += left.empty() ? 0 : 1;
    EXPECT_THAT(mine->prefix_storage.remover->remove_leftovers(commit.entry.commit.run_id), IsEmpty());
    EXPECT_FALSE(exists(path_of(commit))) << "operation " << n;
  }
  EXPECT_GT(told, 2);
}

/// One sync of a directory fails, as a server that is away for a moment does it.
class FailsToSyncOnce final : public ForwardingFileSystem {
 public:
  FailsToSyncOnce(std::shared_ptr<fs::FileSystem> inner, std::string path)
      : ForwardingFileSystem(std::move(inner)), path_(std::move(path)) {}
  void sync_directory(const std::string& path) override {
    if (path == path_ && ++times == fails_at) throw Error(ErrorCode::io, "away for a moment");
    ForwardingFileSystem::sync_directory(path);
  }

  int times = 0;
  int fails_at = 0;

 private:
  std::string path_;
};

TEST_F(OwnPrefix, ThePathIsSyncedOnceAndAgainOnlyIfThatFailed) {
  const auto away = std::make_shared<FailsToSyncOnce>(system, "/");
  PrefixStart start(away);
  const SampleCommit first = sample_commit(1);
  bring(start.prefix_storage, first);
  const int before = away->times;
  away->fails_at = before + 1;
  EXPECT_TRUE(failure_of([&] { (void)start.prefix_storage.writer->publish(first.entry, first.manifest); }));
  EXPECT_EQ(away->times, before + 1);
  publish(start.prefix_storage, sample_commit(2));
  EXPECT_EQ(away->times, before + 2);
  publish(start.prefix_storage, sample_commit(3));
  EXPECT_EQ(away->times, before + 2);
}

}  // namespace
}  // namespace kedge::faults::own_prefix_test
