// Processes of one node that take storage at the same time: look and take are one step, also if a process dies in it,
// and the quota is for all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <thread>

#include "base/attempt.hpp"
#include "harness/forwarding_file_system.hpp"
#include "store_fixture.hpp"

namespace kedge::faults::admission_test {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 4;
constexpr std::uint64_t kEach = std::uint64_t{128} << 10U;
constexpr std::uint64_t kRoom = std::uint64_t{300} << 10U;
const std::vector<int> kAllRanks{0, 1, 2, 3};

using Failures = std::array<std::optional<Failure>, kRanks>;

std::ptrdiff_t admitted(const Failures& failures) {
  return std::ranges::count_if(failures, [](const auto& failure) { return !failure; });
}

/// All look how much is free before any of them takes it, the first time.
class LooksTogether final : public ForwardingFileSystem {
 public:
  LooksTogether(std::shared_ptr<fs::FileSystem> inner, std::barrier<>& all)
      : ForwardingFileSystem(std::move(inner)), all_(all) {}
  fs::Space space(const std::string& path) override {
    auto seen = inner().space(path);
    if (!looked_.exchange(true)) all_.arrive_and_wait();
    return seen;
  }

 private:
  std::barrier<>& all_;
  std::atomic<bool> looked_ = false;
};

/// Says when somebody has been seen to hold a lock.
class SeesHolders final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  std::optional<std::string> lock_holder(const std::string& path) override {
    auto holder = inner().lock_holder(path);
    if (holder) {
      seen = true;
      seen.notify_all();
    }
    return holder;
  }
  std::atomic<bool> seen = false;
};

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() : disk(SimulatedJob::memory_disk()) {
    disk.make_directories("/store");
    Volume volume;
    volume.memory_backed = true;
    volume.cgroup_bytes = kRoom;
    disk.set_volume("/store", volume);
  }

  [[nodiscard]] std::unique_ptr<store::NodeStore> open_store(std::shared_ptr<fs::FileSystem> system, int rank) {
    return std::make_unique<store::NodeStore>(std::move(system), options, store::StoreLocation{"/store", true},
                                              rank_of(rank), kAllRanks);
  }

  /// What each rank meets that begins a container of this size at the same time as the others.
  Failures begin_at_once(std::uint64_t size_bytes, bool look_together = true) {
    std::barrier<> all(kRanks);
    Failures failures;
    std::vector<std::jthread> threads;
    threads.reserve(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        auto system = disk.view(rank);
        if (look_together) system = std::make_shared<LooksTogether>(std::move(system), all);
        const auto own = open_store(std::move(system), rank);
        failures.at(static_cast<std::size_t>(rank)) = attempt([&] {
          static_cast<void>(own->new_files.begin_file({FileKind::container, size_bytes}));
        });
      });
    }
    threads.clear();
    return failures;
  }

  FaultyDisk disk;
  Options::Store options;
};

TEST_F(AdmissionTest, WhatFourProcessesTakeAtOnceNeverExceedsTheLimit) {
  const auto failures = begin_at_once(kEach);
  EXPECT_LE(disk.most_used_bytes("/store"), kRoom) << "the kernel would have killed a process";
  EXPECT_EQ(admitted(failures), 2) << "two fit";
  for (const auto& failure : failures) {
    if (!failure) continue;
    EXPECT_EQ(failure->code, ErrorCode::no_space);
    EXPECT_THAT(failure->message,
                HasSubstr("needs 128.0 KiB more in the node-local store, but 44.0 KiB is free (memory cgroup)"));
  }
}

TEST_F(AdmissionTest, WhatFitsIsGivenToAllThoughEachSeesTheOthers) {
  const auto failures = begin_at_once(kRoom / kRanks / 4096 * 4096);
  EXPECT_EQ(admitted(failures), kRanks);
}

TEST_F(AdmissionTest, TheQuotaIsForAllRanksOfANode) {
  options.quota_bytes = std::uint64_t{256} << 10U;
  const auto failures = begin_at_once(kEach, false);  // whom the quota refuses looks no further
  EXPECT_EQ(admitted(failures), 2);
  EXPECT_LE(disk.most_used_bytes("/store"), options.quota_bytes);
  for (const auto& failure : failures) {
    if (!failure) continue;
    EXPECT_THAT(failure->message, HasSubstr("store.quota_bytes leaves 0 B on this node"));
  }
}

/// Those of the node's other ranks, too.
TEST_F(AdmissionTest, RoutedFilesCountTowardsTheQuota) {
  options.quota_bytes = kEach + 4096;
  const auto own = open_store(disk.view(0), 0);
  disk.make_directories("/store/routed-1.0/deep");
  disk.write_all("/store/routed-1.0/deep/file", std::vector<std::byte>(8192));
  const auto failure = attempt([&] { static_cast<void>(own->new_files.begin_file({FileKind::container, kEach})); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  EXPECT_THAT(failure->message, HasSubstr("store.quota_bytes leaves 124.0 KiB on this node"));
  disk.remove_all("/store/routed-1.0");
  EXPECT_FALSE(attempt([&] { static_cast<void>(own->new_files.begin_file({FileKind::container, kEach})); }));
}

TEST_F(AdmissionTest, WhoDiedWhileItTookCountsNoMore) {
  const auto note = disk.view(1)->try_lock("/store/taking.1.0", "300000");
  const auto own = open_store(disk.view(0), 0);
  disk.kill(1);
  EXPECT_FALSE(attempt([&] { static_cast<void>(own->new_files.begin_file({FileKind::container, kEach})); }));
}

TEST_F(AdmissionTest, WhatDoesNotFitBesideWhatOthersTakeWaitsUntilTheyHaveIt) {
  auto note = disk.view(1)->try_lock("/store/taking.1.0", "300000");
  const auto system = std::make_shared<SeesHolders>(disk.view(0));
  store::Admission admission(system, "/store", rank_of(0));
  admission.set_shared();
  std::atomic<bool> others_are_done = false;
  const std::jthread other([&] {
    system->seen.wait(false);
    others_are_done = true;
    note.reset();
  });
  const auto admitted = admission.admit(kEach, [&](std::uint64_t bytes) -> std::optional<Failure> {
    if (bytes <= kRoom) return std::nullopt;
    return Failure{ErrorCode::no_space, "full", -1, {}, 0};
  });
  EXPECT_TRUE(others_are_done);
  EXPECT_TRUE(admitted);
  EXPECT_EQ(disk.view(2)->lock_holder("/store/taking.0.0"), std::to_string(kEach));
}

TEST_F(AdmissionTest, WhoNeverFinishesIsNotWaitedForForever) {
  const auto note = disk.view(1)->try_lock("/store/taking.1.0", "300000");
  const auto turn = disk.view(1)->try_lock("/store/taking.queue", "rank 1");
  store::Admission admission(disk.view(0), "/store", rank_of(0), std::chrono::seconds(0));
  admission.set_shared();
  const auto fits = [&](std::uint64_t bytes) -> std::optional<Failure> {
    if (bytes <= kRoom) return std::nullopt;
    return Failure{ErrorCode::no_space, "full", -1, {}, 0};
  };
  const auto failure = attempt([&] { static_cast<void>(admission.admit(kEach, fits)); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::no_space);
  EXPECT_FALSE(attempt([&] { static_cast<void>(admission.admit(1000, fits)); })) << "beside it there is room";
}

TEST_F(AdmissionTest, WhereNoNoteCanBeWrittenSavingGoesOn) {
  const auto own = open_store(disk.view(0), 0);
  fs::FileStatus directory;
  directory.kind = fs::FileStatus::Kind::directory;
  directory.owner = 1000;
  disk.plant("/store/taking.0.0", directory);
  EXPECT_FALSE(attempt([&] { static_cast<void>(own->new_files.begin_file({FileKind::container, kEach})); }));
}

/// Of a process that is gone, on a disk that has a bad block there.
TEST_F(AdmissionTest, ANoteThatCannotBeOpenedStopsNoSave) {
  const auto own = open_store(disk.view(0), 0);
  disk.write_all("/store/taking.1.0", {});
  disk.refuse_open("/store/taking.1.0");
  EXPECT_FALSE(attempt([&] { static_cast<void>(own->new_files.begin_file({FileKind::container, kEach})); }));
}

TEST_F(AdmissionTest, WhatIsTakenAheadMustFitForAllRanksOfTheNode) {
  const auto own = open_store(disk.view(0), 0);
  store::StoreFile& file = own->new_files.begin_file({FileKind::container, 0});
  EXPECT_EQ(file.reserve_ahead(4096, kEach), 4096U);
  EXPECT_GT(file.reserve_ahead(8192, kRoom / kRanks / 2), 8192U);
}

TEST_F(AdmissionTest, NotesAreRemovedAtTheEnd) {
  const auto own = open_store(disk.view(0), 0);
  static_cast<void>(own->new_files.begin_file({FileKind::container, kEach}));
  EXPECT_TRUE(disk.snapshot().contains("/store/taking.0.0"));
  own->retirement.free_unused_storage();
  EXPECT_FALSE(disk.snapshot().contains("/store/taking.0.0"));
}

TEST_F(AdmissionTest, NotesOfAStartThatCrashedAreRemovedByTheNext) {
  for (const char* note : {"/store/taking.0.1", "/store/taking.3.0"}) disk.write_all(note, {});
  open_store(disk.view(0), 0)->remove_leftovers();
  EXPECT_FALSE(disk.snapshot().contains("/store/taking.0.1"));
  EXPECT_TRUE(disk.snapshot().contains("/store/taking.3.0")) << "another rank's";
}

}  // namespace
}  // namespace kedge::faults::admission_test
