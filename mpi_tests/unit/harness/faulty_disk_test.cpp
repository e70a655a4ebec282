// The fault machinery itself: what strikes where it was planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <set>
#include <thread>

#include "harness/faulty_fixture.hpp"

namespace kedge::faults::faulty_disk_test {
namespace {

using fs::Access;
using testing::ElementsAre;
using Kind = fs::FileStatus::Kind;

TEST_F(Faulty, EveryMutatingOperationAndEveryPieceIsCounted) {
  const auto file = system->create("/d/a");                      // 1
  file->reserve(4 * kPiece);                                     // 2
  file->write_with_crc(0, bytes_of(2 * kPiece + 1, 1), 0);       // 3 4 5
  file->map(kPiece)->write_with_crc(0, bytes_of(kPiece, 2), 0);  // 6
  file->truncate(kPiece);                                        // 7
  file->sync();                                                  // 8
  system->make_directory("/d/e");                                // 9
  system->rename("/d/a", "/d/e/a");                              // 10
  system->sync_directory("/d");                                  // 11
  system->remove("/d/e/a");                                      // 12
  const auto lock = system->try_lock("/d/lock", "me");           // 13
  EXPECT_EQ(disk.operations(0), 13U);
  EXPECT_EQ(disk.operations(1), 0U);
  const auto reads = disk.reads(0);
  (void)system->list("/d");
  (void)file->status();
  (void)file->checksum(0, kPiece, 0);
  EXPECT_EQ(disk.operations(0), 13U);
  EXPECT_EQ(disk.reads(0), reads + 3);
}

TEST_F(Faulty, ADeathCutsAPieceAtSomeByte) {
  std::set<std::size_t> lengths;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FaultyDisk fresh(options());
    fresh.make_directories("/d");
    const auto view = fresh.view(0);
    const auto file = view->create("/d/a");
    file->reserve(3 * kPiece);
    fresh.stop_world_after(0, 4, seed);  // create, reserve, piece, here
    ASSERT_TRUE(dies([&] { file->write_with_crc(0, bytes_of(3 * kPiece, 7), 0); }));
    const auto left = fresh.read_all("/d/a");
    const auto end = static_cast<std::size_t>(std::count(left.begin(), left.end(), std::byte{7}));
    EXPECT_GE(end, kPiece);
    EXPECT_LE(end, 2 * kPiece);
    EXPECT_EQ(std::find(left.begin(), left.end(), std::byte{0}) - left.begin(), static_cast<std::ptrdiff_t>(end));
    lengths.insert(end);
  }
  EXPECT_GT(lengths.size(), 10U);
}

TEST_F(Faulty, ADeathInAnotherOperationDoesItOrNot) {
  std::set<bool> outcomes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FaultyDisk fresh(options());
    fresh.write_all("/a", bytes_of(1, 1));
    fresh.stop_world_after(0, 1, seed);
    ASSERT_TRUE(dies([&] { fresh.view(0)->rename("/a", "/b"); }));
    const auto names = fresh.snapshot();
    EXPECT_NE(names.contains("/a"), names.contains("/b"));
    outcomes.insert(names.contains("/b"));
  }
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST_F(Faulty, TheSameSeedGivesTheSameDeath) {
  const auto dead_starts = [](std::uint64_t seed) {
    FaultyDisk fresh(options());
    const auto file = fresh.view(0)->create("/a");
    fresh.stop_world_after(0, 3, seed);
    EXPECT_TRUE(dies([&] { file->write_with_crc(0, bytes_of(5 * kPiece, 9), 0); }));
    return fresh.read_all("/a");
  };
  EXPECT_EQ(dead_starts(11), dead_starts(11));
  EXPECT_NE(dead_starts(11), dead_starts(12));
}

TEST_F(Faulty, ADeadRankStaysDeadUntilTheRestart) {
  int died = -1;
  disk.on_death([&](int rank) { died = rank; });
  const auto file = system->create("/d/a");
  file->reserve(kPiece);
  auto mapping = file->map(kPiece);
  auto lock = system->try_lock("/d/lock", "rank 0");
  const auto other = disk.view(1);
  EXPECT_EQ(other->try_lock("/d/lock", "rank 1"), nullptr);
  EXPECT_EQ(other->lock_holder("/d/lock"), "rank 0");

  disk.stop_world_after(0, disk.operations(0) + 1, 1);
  EXPECT_TRUE(dies([&] { file->sync(); }));
  EXPECT_EQ(died, 0);
  EXPECT_TRUE(disk.dead(0));
  EXPECT_TRUE(dies([&] { (void)file->status(); }));
  EXPECT_TRUE(dies([&] { (void)system->list("/d"); }));
  EXPECT_TRUE(dies([&] { (void)disk.view(0)->status("/d"); }));
  EXPECT_TRUE(dies([&] { mapping->write_with_crc(0, bytes_of(1, 1), 0); }));
  EXPECT_FALSE(disk.dead(1));

  EXPECT_EQ(other->lock_holder("/d/lock"), std::nullopt);  // the kernel released it at once
  auto taken = other->try_lock("/d/lock", "rank 1");
  EXPECT_NE(taken, nullptr);
  lock.reset();  // the dead one's object takes nothing from the new holder
  EXPECT_EQ(disk.view(2)->lock_holder("/d/lock"), "rank 1");

  disk.restart();
  EXPECT_EQ(disk.operations(0), 0U);
  EXPECT_THAT(system->list("/d"), ElementsAre("a", "lock"));
  EXPECT_TRUE(dies([&] { (void)file->status(); }));  // a handle of the earlier start
  EXPECT_NE(system->try_lock("/d/lock", "rank 0"), nullptr);
  mapping.reset();
}

TEST_F(Faulty, StopAllEndsEveryRankAtItsNextOperation) {
  const auto other = disk.view(1);
  disk.on_death([&](int) { disk.stop_all(3); });
  disk.stop_world_after(0, 1, 3);
  EXPECT_TRUE(dies([&] { (void)system->create("/d/a"); }));
  EXPECT_FALSE(disk.dead(1));
  EXPECT_TRUE(dies([&] { (void)other->status("/d"); }));
  EXPECT_TRUE(disk.dead(1));
  disk.restart();
  EXPECT_FALSE(dies([&] { (void)other->status("/d"); }));
}

TEST_F(Faulty, AKilledRankLosesItsLocks) {
  const auto lock = system->try_lock("/d/lock", "rank 0");
  disk.kill(0);
  EXPECT_TRUE(dies([&] { (void)system->status("/d"); }));
  EXPECT_NE(disk.view(1)->try_lock("/d/lock", "rank 1"), nullptr);
}

TEST_F(Faulty, PlannedErrorsStrikeOnceAndDoNothing) {
  disk.fail(0, 2, EIO);
  disk.fail(0, 4, EDQUOT);
  const auto file = system->create("/d/a");
  auto failure = failure_of([&] { file->write_with_crc(0, bytes_of(kPiece, 1), 0); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(failure->system_errno, EIO);
  EXPECT_EQ(file->status().size_bytes, 0U);
  EXPECT_NO_THROW(file->write_with_crc(0, bytes_of(kPiece, 1), 0));
  failure = failure_of([&] { file->reserve(2 * kPiece); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  EXPECT_NO_THROW(file->reserve(2 * kPiece));

  disk.fail_read(0, disk.reads(0) + 1, ESTALE);
  failure = failure_of([&] { (void)file->checksum(0, 1, 0); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->system_errno, ESTALE);
  EXPECT_NO_THROW((void)file->checksum(0, 1, 0));
}

TEST_F(Faulty, ErrorsBySeedStrikeAboutAsOftenAsAsked) {
  disk.fail_sometimes(0, 4, EIO, 5);
  int failed = 0;
  for (int i = 0; i < 400; ++i) failed += failure_of([&] { system->remove("/d/none"); }) ? 1 : 0;
  EXPECT_GT(failed, 50);
  EXPECT_LT(failed, 150);
  disk.fail_sometimes(0, 0, 0, 0);
  EXPECT_NO_THROW(system->remove("/d/none"));
}

TEST_F(Faulty, VolumesFillUpAndGiveBack) {
  Volume small;
  small.capacity_bytes = 3 * kPiece;
  small.capacity_inodes = 3;  // the directory and two files
  small.memory_backed = true;
  small.limit = "memory cgroup";
  disk.set_volume("/d", small);
  auto file = system->create("/d/a");
  file->reserve(2 * kPiece);
  const auto space = system->space("/d");
  EXPECT_EQ(space.free_bytes, kPiece);
  EXPECT_EQ(space.free_inodes, 1U);
  EXPECT_TRUE(space.memory_backed);
  EXPECT_EQ(space.limit, "memory cgroup");

  const auto second = system->create("/d/b");
  EXPECT_EQ(failure_of([&] { (void)system->create("/d/c"); }).value().code, ErrorCode::no_space);
  EXPECT_EQ(failure_of([&] { second->write_with_crc(0, bytes_of(2 * kPiece, 1), 0); }).value().code,
            ErrorCode::no_space);
  EXPECT_EQ(second->status().size_bytes, kPiece);  // the piece that still had room

  system->remove("/d/a");
  EXPECT_EQ(disk.used_bytes("/d"), 3 * kPiece);  // still open
  file.reset();
  EXPECT_EQ(disk.used_bytes("/d"), kPiece);
  EXPECT_EQ(failure_of([&] { system->rename("/d/b", "/b"); }).value().system_errno, EXDEV);
}

TEST_F(Faulty, ABrokenVolumeFailsWhatItIsToldTo) {
  disk.write_all("/d/a", bytes_of(10, 1));
  Volume broken;
  broken.write_errno = EROFS;
  disk.set_volume("/d", broken);
  const auto file = system->open("/d/a", Access::read);
  EXPECT_EQ(failure_of([&] { (void)system->create("/d/b"); }).value().system_errno, EROFS);
  EXPECT_NO_THROW((void)file->checksum(0, 10, 0));
  broken.read_errno = ESTALE;
  disk.set_volume("/d", broken);
  EXPECT_EQ(failure_of([&] { (void)file->checksum(0, 10, 0); }).value().system_errno, ESTALE);
  EXPECT_EQ(failure_of([&] { (void)system->list("/d"); }).value().system_errno, ESTALE);
  EXPECT_NO_THROW((void)system->list("/"));
}

TEST_F(Faulty, EachRankMayHaveItsOwnNodeAtTheSamePath) {
  for (const int rank : {0, 1}) {
    disk.make_directories("/nodes/" + std::to_string(rank));
    disk.mount(rank, "/local", "/nodes/" + std::to_string(rank));
  }
  const auto other = disk.view(1);
  EXPECT_NE(system->create("/local/a"), nullptr);
  EXPECT_FALSE(other->status("/local/a"));
  EXPECT_NE(other->create("/local/a"), nullptr);
  EXPECT_EQ(other->canonical("/local/./a"), "/local/a");
  disk.remove_all("/nodes/0");
  disk.make_directories("/nodes/0");
  EXPECT_TRUE(system->list("/local").empty());
  EXPECT_THAT(other->list("/local"), ElementsAre("a"));
}

TEST_F(Faulty, ForeignFilesAreSeenAndNotOpened) {
  disk.plant("/d/theirs", {Kind::file, 100, 4711, 0600, 1});
  disk.plant("/d/linked", {Kind::file, 100, 1000, 0600, 2});
  disk.plant("/d/pipe", {Kind::other, 0, 1000, 0600, 1});
  EXPECT_EQ(system->status("/d/theirs").value().owner, 4711U);
  EXPECT_EQ(system->status("/d/linked").value().links, 2U);
  EXPECT_EQ(failure_of([&] { (void)system->open("/d/theirs", Access::read); }).value().system_errno, EACCES);
  EXPECT_EQ(failure_of([&] { (void)system->open("/d/pipe", Access::read); }).value().code, ErrorCode::io);
  disk.plant("/d/theirs", {Kind::file, 100, 4711, 0644, 1});
  EXPECT_NO_THROW((void)system->open("/d/theirs", Access::read));
  EXPECT_THROW((void)system->open("/d/theirs", Access::read_write), Error);
  disk.plant("/shared", {Kind::directory, 0, 4711, 0755, 2});
  EXPECT_EQ(failure_of([&] { (void)system->create("/shared/a"); }).value().system_errno, EACCES);
}

TEST_F(Faulty, OutsidersDamageWhatIsMapped) {
  const auto file = system->create("/d/a");
  file->reserve(2 * kPiece);
  const auto mapping = file->map(2 * kPiece);
  const auto clean = mapping->checksum(0, 2 * kPiece, 0);
  disk.flip_bit("/d/a", 5000, 3);
  EXPECT_EQ(mapping->bytes()[5000], std::byte{8});
  EXPECT_NE(mapping->checksum(0, 2 * kPiece, 0), clean);
  disk.truncate_from_outside("/d/a", kPiece);
  EXPECT_EQ(failure_of([&] { (void)mapping->checksum(0, 2 * kPiece, 0); }).value().code, ErrorCode::corrupt);
  EXPECT_EQ(failure_of([&] { mapping->write_with_crc(kPiece, bytes_of(1, 1), 0); }).value().code, ErrorCode::corrupt);
}

TEST_F(Faulty, ABitThatFlipsAtAnOpeningLeavesAShorterFileAlone) {
  (void)system->create("/d/a")->reserve(2 * kPiece);
  disk.flip_bit_when_opened("/d/a", kPiece + 1);
  disk.truncate_from_outside("/d/a", kPiece);
  system->open("/d/a", Access::read_write)->reserve(2 * kPiece);
  EXPECT_EQ(disk.read_all("/d/a"), std::vector(2 * kPiece, std::byte{0}));
  (void)system->open("/d/a", Access::read_write);
  EXPECT_EQ(disk.read_all("/d/a")[kPiece + 1], std::byte{1});
}

TEST_F(Faulty, ASnapshotBringsBackAnOlderFileOrTheWholeDisk) {
  disk.write_all("/d/a", bytes_of(10, 1));
  disk.plant_link("/d/link", "a");
  const auto before = disk.snapshot();
  disk.write_all("/d/a", bytes_of(20, 2));
  disk.write_all("/d/b", bytes_of(5, 3));
  disk.restore(before, "/d/a");
  EXPECT_EQ(disk.read_all("/d/a"), bytes_of(10, 1));
  EXPECT_EQ(disk.read_all("/d/b"), bytes_of(5, 3));
  disk.restore(before);
  EXPECT_THAT(system->list("/d"), ElementsAre("a", "link"));
  EXPECT_EQ(system->status("/d/link").value().kind, Kind::link);
  EXPECT_EQ(disk.used_bytes("/d"), 10U);
}

TEST_F(Faulty, RanksAsThreadsShareTheDisk) {
  constexpr int kRanks = 4;
  std::vector<std::thread> threads;
  threads.reserve(kRanks);
  disk.on_death([&](int) { disk.stop_all(2); });
  disk.stop_world_after(2, 30, 2);
  std::atomic<int> deaths{0};
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto view = disk.view(rank);
      const auto died = dies([&] {
        const auto lock = view->try_lock("/d/lock" + std::to_string(rank), "me");
        for (int i = 0;; ++i) {
          const auto file = view->create("/d/" + std::to_string(rank) + "-" + std::to_string(i));
          file->write_with_crc(0, bytes_of(3 * kPiece, rank), 0);
          std::this_thread::yield();
        }
      });
      deaths += died ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(deaths, kRanks);
  disk.restart();
  EXPECT_EQ(disk.view(0)->lock_holder("/d/lock2"), std::nullopt);
  EXPECT_EQ(disk.read_all("/d/2-0"), bytes_of(3 * kPiece, 2));
}

}  // namespace
}  // namespace kedge::faults::faulty_disk_test
