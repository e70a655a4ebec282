// The prefix keeps what a tier promises, and what only a filesystem can break.
#include "persist/posix_prefix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "base/invariant.hpp"
#include "harness/faulty_fixture.hpp"
#include "unit/persist/prefix_start.hpp"
#include "unit/persist/support.hpp"
#include "unit/persist/tier_contract.hpp"

namespace kedge::faults::posix_tier_test {
namespace {

using persist::PrefixMarkers;
using persist::RunStart;
using persist::testing::PrefixStart;
using persist::testing::sample_commit;
using persist::testing::SampleCommit;

class PosixPlace final : public TierPlace {
 public:
  PosixPlace() : other_(persist::posix_prefix_storage(disk_.view(1), make_prefix(), {}, nullptr)) { start_again(); }

  const persist::PrefixStorage& prefix_storage() override { return starts_.back()->prefix_storage; }
  PrefixMarkers markers() override { return PrefixMarkers(starts_.back()->start); }
  const persist::PrefixStorage& other_rank() override { return other_; }
  void start_again() override { starts_.push_back(std::make_unique<PrefixStart>(disk_.view(0))); }
  const persist::PrefixStorage& overtaken() override { return starts_.at(starts_.size() - 2)->prefix_storage; }
  void fail(std::uint64_t n) override { disk_.fail(0, disk_.operations(0) + n, EIO); }
  void heal() override { disk_.heal(0); }

 private:
  static DiskOptions options() {
    DiskOptions options;
    options.piece_bytes = kPiece;
    return options;
  }
  std::string make_prefix() {
    disk_.make_directories("/prefix", 0755);
    return "/prefix";
  }

  FaultyDisk disk_{options()};
  persist::PrefixStorage other_;
  std::vector<std::unique_ptr<PrefixStart>> starts_;
};

INSTANTIATE_TEST_SUITE_P(Posix, TierContract, testing::Values([]() -> std::unique_ptr<TierPlace> {
                           return std::make_unique<PosixPlace>();
                         }));

class PosixTierTest : public Faulty {
 protected:
  /// A whole commit as another run left it; its path.
  std::string add(const SampleCommit& commit, const std::string& directory) {
    disk.make_directories(directory + "/data/0", 0755);
    for (std::uint32_t rank = 0; rank < commit.containers.size(); ++rank) {
      disk.write_all(directory + "/" + commit.rows[rank].file, commit.containers[rank]);
    }
    disk.write_all(directory + "/checkpoint.h5", commit.manifest);
    return directory;
  }
  void give_away(const std::string& path, std::uint32_t owner, std::uint32_t mode) {
    fs::FileStatus status = *system->status(path);
    status.owner = owner;
    status.mode = mode;
    disk.plant(path, status);
  }
};

TEST_F(PosixTierTest, ASourceMayBeASingleTagDirectory) {
  const SampleCommit commit = sample_commit(1);
  add(commit, "/d/copy");
  const auto source = persist::posix_source_reader(system, "/d/copy", {});
  const persist::TagList list = source->list_commits();
  ASSERT_EQ(list.entries.size(), 1U);
  EXPECT_EQ(list.entries[0].directory, ".");
  EXPECT_EQ(list.entries[0].commit, commit.entry.commit);
  source->require_trusted(list.entries[0]);
  EXPECT_EQ(source->open_container(".", commit.entry.commit, {1}).path, "/d/copy/" + commit.rows[1].file);
}

TEST_F(PosixTierTest, ASourceIsListedOnlyIfNobodyElseMayReplaceWhatIsInIt) {
  const SampleCommit commit = sample_commit(1);
  add(commit, "/d/" + commit.entry.directory);
  EXPECT_EQ(persist::posix_source_reader(system, "/d", {})->list_commits().entries.size(), 1U);
  give_away("/d", 4711, 0777);
  const auto failure = failure_of([&] { (void)persist::posix_source_reader(system, "/d", {})->list_commits(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
}

TEST_F(PosixTierTest, EveryFileOfACommitMustBeTrusted) {
  const SampleCommit commit = sample_commit(1);
  const std::string directory = add(commit, "/d/" + commit.entry.directory);
  const persist::PrefixStorage prefix_storage = persist::posix_prefix_storage(system, "/d", {}, nullptr);
  const auto opens = [&] {
    return !failure_of([&] {
      prefix_storage.reader->require_trusted(commit.entry);
      (void)prefix_storage.reader->open_container(commit.entry.directory, commit.entry.commit, {0});
    });
  };
  EXPECT_TRUE(opens());
  for (const std::string& path : {directory, directory + "/checkpoint.h5", directory + "/" + commit.rows[0].file}) {
    const auto before = disk.snapshot();
    give_away(path, 4711, 0755);
    EXPECT_FALSE(opens()) << path;
    disk.restore(before);
  }
  EXPECT_TRUE(opens());
}

TEST_F(PosixTierTest, WhoHasNoRecordsChangesNoNames) {
  const persist::PrefixStorage prefix_storage = persist::posix_prefix_storage(system, "/d", {}, nullptr);
  const SampleCommit commit = sample_commit(1);
  EXPECT_THROW(prefix_storage.writer->begin_commit(commit.entry, 1000, {}), BrokenInvariant);
  EXPECT_THROW(prefix_storage.remover->discard_unpublished(commit.entry), BrokenInvariant);
  EXPECT_THROW(prefix_storage.remover->remove_commit(commit.entry), BrokenInvariant);
  EXPECT_THROW(prefix_storage.remover->set_pinned(commit.entry, true), BrokenInvariant);
}

TEST_F(PosixTierTest, APrefixWithoutRoomIsNoSpaceBeforeAnythingIsWritten) {
  Volume small;
  small.capacity_bytes = 1000;
  disk.make_directories("/prefix", 0755);
  disk.set_volume("/prefix", small);
  const RunStart start({system, "/prefix", "heat"});
  const persist::PrefixStorage prefix_storage = persist::posix_prefix_storage(system, "/prefix", {}, &start);
  SampleCommit commit = sample_commit(1);
  const auto before = disk.snapshot().size();
  const auto failure = failure_of([&] { prefix_storage.writer->begin_commit(commit.entry, 10, {}); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  EXPECT_EQ(disk.snapshot().size(), before);
}

}  // namespace
}  // namespace kedge::faults::posix_tier_test
