// The faulty disk after a crash: what a new start finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <set>
#include <thread>

#include "harness/faulty_fixture.hpp"

namespace kedge::faults::faulty_disk_crash_test {
namespace {

using fs::Access;
using testing::ElementsAre;
using Kind = fs::FileStatus::Kind;

TEST_F(Faulty, AProcessCrashKeepsAllThatWasIssued) {
  write("/d/a", bytes_of(3 * kPiece, 1));
  disk.restart();
  EXPECT_EQ(disk.read_all("/d/a"), bytes_of(3 * kPiece, 1));
}

TEST_F(Faulty, APowerLossMixesUnsyncedPagesAndKeepsSyncedOnes) {
  constexpr std::size_t kPages = 64;
  write("/d/kept", bytes_of(kPages * kPage, 1));
  system->open("/d/kept", Access::read_write)->sync();
  write("/d/torn", bytes_of(kPages * kPage, 1));
  system->open("/d/torn", Access::read_write)->sync();
  system->sync_directory("/d");
  write("/d/torn", bytes_of(kPages * kPage, 2));
  disk.restart(Crash::power, 1);
  EXPECT_EQ(disk.read_all("/d/kept"), bytes_of(kPages * kPage, 1));
  const auto torn = disk.read_all("/d/torn");
  ASSERT_EQ(torn.size(), kPages * kPage);
  std::size_t fresh = 0;
  for (std::size_t page = 0; page < kPages; ++page) {
    const auto bytes = std::span(torn).subspan(page * kPage, kPage);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == bytes[0]; }));
    if (bytes[0] == std::byte{2}) ++fresh;
  }
  EXPECT_GT(fresh, kPages / 8);
  EXPECT_LT(fresh, kPages * 7 / 8);
}

TEST_F(Faulty, APowerLossKeepsUnsyncedNamesOrNot) {
  std::set<std::vector<std::string>> outcomes;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    FaultyDisk fresh(options());
    fresh.make_directories("/d");
    const auto view = fresh.view(0);
    for (const auto* name : {"/d/synced", "/d/old", "/d/gone"}) {
      const auto file = view->create(name);
      file->write_with_crc(0, bytes_of(10, 1), 0);
      file->sync();
    }
    view->sync_directory("/d");
    view->rename("/d/old", "/d/new");
    view->remove("/d/gone");
    (void)view->create("/d/born");
    fresh.restart(Crash::power, seed);
    const auto names = fresh.view(0)->list("/d");
    EXPECT_THAT(names, testing::Contains("synced"));
    EXPECT_NE(std::count(names.begin(), names.end(), "old"), std::count(names.begin(), names.end(), "new"));
    for (const auto& name : names) {
      if (name == "born") continue;
      EXPECT_EQ(fresh.read_all("/d/" + name), bytes_of(10, 1)) << name;
    }
    EXPECT_EQ(fresh.used_bytes("/d"),
              10U * (names.size() - static_cast<std::size_t>(std::count(names.begin(), names.end(), "born"))));
    outcomes.insert(names);
  }
  EXPECT_EQ(outcomes.size(), 8U);  // each of three changes kept or lost
}

TEST_F(Faulty, SyncedNamesSurviveEveryPowerLoss) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FaultyDisk fresh(options());
    fresh.make_directories("/d");
    const auto view = fresh.view(0);
    const auto file = view->create("/d/tmp");
    file->write_with_crc(0, bytes_of(2 * kPiece, 4), 0);
    file->sync();
    view->rename("/d/tmp", "/d/final");
    view->sync_directory("/d");
    fresh.restart(Crash::power, seed);
    EXPECT_THAT(view->list("/d"), ElementsAre("final"));
    EXPECT_EQ(fresh.read_all("/d/final"), bytes_of(2 * kPiece, 4));
  }
}

TEST_F(Faulty, MemoryIsEmptyAfterAPowerLoss) {
  Volume memory;
  memory.memory_backed = true;
  disk.set_volume("/d", memory);
  write("/d/a", bytes_of(10, 1));
  system->open("/d/a", Access::read_write)->sync();
  system->sync_directory("/d");
  disk.restart(Crash::process);
  EXPECT_THAT(system->list("/d"), ElementsAre("a"));
  disk.restart(Crash::power, 1);
  EXPECT_TRUE(system->list("/d").empty());
  EXPECT_EQ(disk.used_bytes("/d"), 0U);
}

}  // namespace
}  // namespace kedge::faults::faulty_disk_crash_test
