// The directory of a run's records: it is made with the prefix, and all that is written there outlives a power loss.
#include "persist/record_directory.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <vector>

#include "persist/prefix_markers.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/unfinished_tags.hpp"
#include "unit/persist/records_fixture.hpp"

namespace kedge::faults::record_directory_test {
namespace {

using persist::PrefixMarkers;
using persist::RecordDirectory;
using persist::RunStart;
using persist::UnfinishedTags;
using persist::testing::id_of;
using persist::testing::kRecord;
using persist::testing::kSeeds;

const Id128 kRun = id_of(3);

using RecordDirectoryTest = persist::testing::RecordsTest;

/// What a start writes, and what must be true of it from then on.
struct Write {
  std::function<void(RunStart&)> write;
  std::function<bool(RunStart&)> is_there;
};

const std::vector<Write>& writes() {
  static const std::vector<Write> all = {
      {[](RunStart& mine) { (void)mine.take_incarnation(); },
       [](RunStart& later) { return later.take_incarnation() > 2; }},
      {[](RunStart& mine) { mine.mark_begun({}); }, [](RunStart& later) { return !later.is_newest(); }},
      {[](RunStart& mine) { mine.mark_begun({id_of(7)}); },
       [](RunStart& later) {
         return persist::read_record_of_newest_start(later.directory().file_system(), later.directory().path()) ==
                persist::RunRecord{id_of(7)};
       }},
      {[](RunStart& mine) { persist::write_run_record(mine, kRecord); },
       [](RunStart& later) {
         return persist::read_run_record(later.directory().file_system(), later.directory().path()).record == kRecord;
       }},
      {[](RunStart& mine) { PrefixMarkers(mine).mark_first_commit(kRun, id_of(1)); },
       [](RunStart& later) { return PrefixMarkers(later).has_first_commit({}); }},
      {[](RunStart& mine) { PrefixMarkers(mine).mark_first_manifest(kRun, id_of(1)); },
       [](RunStart& later) { return PrefixMarkers(later).has_first_manifest({}); }},
      {[](RunStart& mine) { PrefixMarkers(mine).mark_discarded(id_of(2)); },
       [](RunStart& later) { return PrefixMarkers(later).is_discarded(id_of(2)); }},
      {[](RunStart& mine) { UnfinishedTags(mine).mark("a.1-00000000"); },
       [](RunStart& later) {
         (void)later.take_incarnation();
         return UnfinishedTags(later).list() == std::vector<std::string>{"a.1-00000000"};
       }},
  };
  return all;
}

TEST_F(RecordDirectoryTest, WhatWasWrittenOutlivesAPowerLossRightAfterTheCall) {
  for (const Write& one : writes()) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      make_prefix();
      RunStart mine = start();
      one.write(mine);
      disk.restart(Crash::power, seed);
      RunStart later = next_start();
      EXPECT_TRUE(one.is_there(later)) << "write " << &one - writes().data() << ", seed " << seed;
    }
  }
}

/// What an earlier try left may not be on stable storage yet.
TEST_F(RecordDirectoryTest, WhatASecondTryWroteOutlivesAPowerLossToo) {
  for (std::uint64_t n = 1; n <= 4; ++n) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      make_prefix();
      RunStart mine = start();
      disk.fail(0, disk.operations(0) + n, EIO);
      (void)failure_of([&] { PrefixMarkers(mine).mark_first_commit(kRun, id_of(1)); });
      disk.heal(0);
      PrefixMarkers(mine).mark_first_commit(kRun, id_of(1));
      disk.restart(Crash::power, seed);
      EXPECT_TRUE(PrefixMarkers(next_start()).has_first_commit({})) << "operation " << n << ", seed " << seed;
    }
  }
}

TEST_F(RecordDirectoryTest, APrefixIsMadeWithAllThatLeadsToItAndAFileIsNone) {
  (void)failure_of([&] { RecordDirectory(system, "/d/a/b/c", "heat"); });  // there is no umask: it is open to all
  EXPECT_TRUE(system->status("/d/a/b/c"));
  disk.write_all("/d/file", bytes_of(1, 1));
  const auto failure = failure_of([&] { RecordDirectory(system, "/d/file", "heat"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_THAT(failure->message, ::testing::HasSubstr("choose another prefix"));
  (void)next_start();
  plant("../other");
  EXPECT_EQ(code_of([&] { RecordDirectory(system, "/d/prefix", "other"); }), ErrorCode::io);
}

TEST(PrefixWithoutUmask, IsOneThatTheNextStartAccepts) {
  const std::string directory = testing::TempDir() + "kedge-umask-" + std::to_string(::getpid());
  const mode_t before = ::umask(0);
  for (int start = 0; start < 2; ++start) {
    EXPECT_NO_THROW((void)persist::make_prefix(*fs::posix_file_system(), directory + "/a/b")) << "start " << start;
  }
  ::umask(before);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace kedge::faults::record_directory_test
