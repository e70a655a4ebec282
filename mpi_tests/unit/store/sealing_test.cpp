// The two votes by which files of the store come into being, several ranks in one process, a failure in each vote.
#include "store/seal_transaction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "format/superblock.hpp"
#include "harness/faulty_file_system.hpp"
#include "harness/forwarding_communicator.hpp"
#include "harness/testing_world.hpp"

namespace kedge::store::sealing_test {
namespace {

constexpr int kRanks = 4;
constexpr std::uint64_t kBytes = 20'000;
constexpr FileKey kKey{Id128{{1}}, {}};
constexpr std::uint64_t kGeneration = 7;

/// Rank 3 hears of a failure late: whoever goes on before it has unsealed is caught at it.
class LateToHear final : public testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override {
    ForwardingCommunicator::broadcast(bytes, root, deadline, group);
    if (rank() == kRanks - 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
};

/// One rank's part.
struct Rank {
  Communicator& communicator;
  comm::Group group;
  NodeStore store;
  SealTransaction sealing;

  Rank(Communicator& its_communicator, faults::FaultyDisk& disk, bool memory)
      : communicator(its_communicator),
        group(communicator, std::chrono::hours(1)),
        store(disk.view(communicator.rank()), Options::Store{}, StoreLocation{"/store", memory}, me()),
        sealing(group, store, !memory) {}

  [[nodiscard]] LogicalRank me() const { return LogicalRank{static_cast<std::uint32_t>(communicator.rank())}; }
  UnsealedFile& begin() {
    UnsealedFile& draft = sealing.begin_file(FileKind::container, kKey, kGeneration, kBytes);
    const std::vector<std::byte> all(kBytes, std::byte{0x5a});
    (void)draft.write_with_crc(0, all, 0);
    return draft;
  }
};

/// By memory-backed or not.
class SealingOfRanks : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    disk.make_directories("/store");
    faults::Volume volume;
    volume.memory_backed = GetParam();
    disk.set_volume("/store", volume);
  }

  void run(const std::function<void(Rank&)>& body) {
    testing::InProcessWorld world(kRanks);
    const auto outcomes = world.run_connected([&](Communicator& communicator) {
      LateToHear late(communicator);
      Rank rank(late, disk, GetParam());
      body(rank);
    });
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "");
    }
  }

  [[nodiscard]] int sealed() const {
    int count = 0;
    for (const auto& [path, entry] : disk.snapshot()) {
      if (!path.starts_with("/store/rank-") || entry.bytes.size() < format::kSuperblockBytes) continue;
      if (!format::is_unsealed(std::span(entry.bytes).first(format::kSuperblockBytes))) ++count;
    }
    return count;
  }
  static std::string path_of(int rank) { return compose("/store/rank-{}.0.h5", rank); }

  /// After a vote that failed: the same on all ranks, nothing sealed or held anywhere, and the next one succeeds.
  void expect_given_up(Rank& rank, const std::optional<Failure>& failure, int failing, const std::string& message) {
    EXPECT_EQ(sealed(), 0) << "rank " << rank.communicator.rank() << " goes on while another's file is sealed";
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, failing);
    EXPECT_THAT(failure->message, testing::HasSubstr(message));
    EXPECT_FALSE(rank.store.files.has_file(FileKind::container, rank.me(), kKey));
    EXPECT_EQ(rank.store.slots.used_bytes(), 0U);
    EXPECT_FALSE(rank.sealing.discard_failure());
    rank.communicator.barrier(Deadline::never(), {});
    (void)rank.begin();
    EXPECT_FALSE(rank.sealing.seal({}));
    EXPECT_TRUE(rank.store.files.has_file(FileKind::container, rank.me(), kKey));
  }

  faults::FaultyDisk disk;
};

TEST_P(SealingOfRanks, SealOnAll) {
  run([&](Rank& rank) {
    UnsealedFile& draft = rank.begin();
    std::vector<std::byte> head(format::kSuperblockBytes);
    (void)draft.read_with_crc(0, head, 0);
    EXPECT_EQ(head.back(), std::byte{0x5a}) << "the head is read back before it is written";
    std::vector<std::byte> all(kBytes);
    draft.read(0, all);
    EXPECT_EQ(all, std::vector<std::byte>(kBytes, std::byte{0x5a}));
    draft.read(4000, std::span(all).first(200));
    draft.read(kBytes - 1, std::span(all).first(1));
    EXPECT_EQ(all, std::vector<std::byte>(kBytes, std::byte{0x5a}));
    EXPECT_FALSE(rank.sealing.vote_ready({}));
    EXPECT_EQ(sealed(), 0) << "before all voted ready";
    rank.communicator.barrier(Deadline::never(), {});
    EXPECT_FALSE(rank.sealing.write_seals());
    EXPECT_EQ(sealed(), kRanks);
    EXPECT_NO_THROW(rank.store.files.unpin(rank.store.files.pin(FileKind::container, rank.me(), kKey)));
    EXPECT_EQ(disk.read_all(path_of(rank.communicator.rank())), std::vector<std::byte>(kBytes, std::byte{0x5a}));
  });
}

/// Runs something once, when the ranks first exchange anything.
class Meanwhile final : public testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    if (const auto once = std::exchange(what, {})) once();
    ForwardingCommunicator::all_reduce(values, reduction, deadline, group);
  }
  std::function<void()> what;
};

// The space of a file that a worker makes ready between the look at what is needed and the one at what is free.
TEST_P(SealingOfRanks, WhatIsMadeReadyMeanwhileIsNotCountedTwice) {
  testing::InProcessWorld world(kRanks);
  Options::Store options;
  options.quota_bytes = kBytes * 3 / 2;
  const auto outcomes = world.run_connected([&](Communicator& communicator) {
    Meanwhile meanwhile(communicator);
    const comm::Group group(meanwhile, std::chrono::hours(1));
    const LogicalRank me{static_cast<std::uint32_t>(communicator.rank())};
    NodeStore store(disk.view(communicator.rank()), options, StoreLocation{"/store", GetParam()}, me);
    const PlannedFile planned{FileKind::container, kBytes};
    for (const std::uint64_t made : {kBytes, kBytes / 2}) {
      SealTransaction sealing(group, store, false);
      if (communicator.rank() == 2)
        meanwhile.what = [&] { store.new_files.preallocate(FileKind::container, made, {1, 2}); };
      const auto failure = sealing.begin_on_all_ranks(
          std::span(&planned, 1), [&] { (void)sealing.begin_file(FileKind::container, kKey, kGeneration, kBytes); });
      EXPECT_FALSE(failure) << to_string(*failure);
      EXPECT_FALSE(meanwhile.what);
      sealing.abort();
      store.retirement.free_unused_storage();
    }
  });
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned());
}

TEST_P(SealingOfRanks, AFailureBroughtToTheFirstVoteSealsNothing) {
  for (int failing = 0; failing < kRanks; ++failing) {
    SetUp();
    run([&](Rank& rank) {
      std::optional<Failure> local;
      (void)rank.begin();
      if (rank.communicator.rank() == failing) local = Failure{ErrorCode::no_space, "no room", -1, {}, 0};
      expect_given_up(rank, rank.sealing.seal(local), failing, "no room");
    });
    disk.remove_all("/store");
    disk.make_directories("/store");
  }
}

TEST_P(SealingOfRanks, WhatCannotBeFlushedFailsTheFirstVote) {
  for (int failing = 0; failing < kRanks; ++failing) {
    run([&](Rank& rank) {
      (void)rank.begin();
      if (rank.communicator.rank() == failing) disk.truncate_from_outside(path_of(failing), 5000);
      const auto failure = rank.sealing.vote_ready({});
      expect_given_up(rank, failure, failing, "by another process");
    });
    disk.remove_all("/store");
    disk.make_directories("/store");
  }
}

TEST_P(SealingOfRanks, OneThatCannotSealUnsealsAllBeforeAnyGoesOn) {
  for (int failing = 0; failing < kRanks; ++failing) {
    run([&](Rank& rank) {
      (void)rank.begin();
      EXPECT_FALSE(rank.sealing.vote_ready({}));
      if (rank.communicator.rank() == failing) disk.truncate_from_outside(path_of(failing), 5000);
      const auto failure = rank.sealing.write_seals();
      expect_given_up(rank, failure, failing, "by another process");
    });
    disk.remove_all("/store");
    disk.make_directories("/store");
  }
}

TEST_P(SealingOfRanks, AFailureBetweenTheVotesGivesUpOnAll) {
  run([&](Rank& rank) {
    (void)rank.begin();
    EXPECT_FALSE(rank.sealing.vote_ready({}));
    std::optional<Failure> local;
    if (rank.communicator.rank() == 2) local = Failure{ErrorCode::mismatch, "a hole", -1, {}, 0};
    const auto failure = rank.sealing.vote(local);
    rank.communicator.barrier(Deadline::never(), {});
    expect_given_up(rank, failure, 2, "a hole");
  });
}

TEST_P(SealingOfRanks, WhoTimesOutInTheSecondVoteLeavesItsSeal) {
  run([&](Rank& rank) {
    (void)rank.begin();
    EXPECT_FALSE(rank.sealing.vote_ready({}));
    if (rank.communicator.rank() == 0) return;
    const auto failure = attempt([&] { (void)rank.sealing.write_seals(); });
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->code, ErrorCode::timeout);
  });
  EXPECT_EQ(sealed(), kRanks - 1) << "another rank may have returned from the commit";
}

TEST_P(SealingOfRanks, AFileOfUnknownSizeIsSealedAtTheSizeThatItGot) {
  run([&](Rank& rank) {
    UnsealedFile& draft = rank.sealing.begin_unsized_file(FileKind::container, kKey, kGeneration, 0);
    draft.file().reserve(30'000);
    draft.file().set_size(9'000);
    draft.head().fill(std::byte{1});
    EXPECT_FALSE(rank.sealing.seal({}));
    EXPECT_EQ(disk.read_all(path_of(rank.communicator.rank())).size(), 9'000U);
  });
  EXPECT_EQ(sealed(), kRanks);
}

TEST_P(SealingOfRanks, WhatCannotBeTakenBackIsSaid) {
  run([&](Rank& rank) {
    (void)rank.begin();
    rank.communicator.barrier(Deadline::never(), {});
    if (rank.communicator.rank() == 0) {
      faults::Volume broken;
      broken.memory_backed = GetParam();
      broken.write_errno = EROFS;
      disk.set_volume("/store", broken);
    }
    rank.communicator.barrier(Deadline::never(), {});
    rank.sealing.abort();
    ASSERT_TRUE(rank.sealing.discard_failure().has_value());
    EXPECT_EQ(rank.sealing.discard_failure()->system_errno, EROFS);
  });
}

TEST_P(SealingOfRanks, VotesComeInTheirOrder) {
  run([&](Rank& rank) {
    (void)rank.begin();
    EXPECT_THROW((void)rank.sealing.write_seals(), BrokenInvariant) << "without the first vote";
    EXPECT_FALSE(rank.sealing.vote_ready({}));
    EXPECT_THROW((void)rank.sealing.vote_ready({}), BrokenInvariant);
    EXPECT_THROW((void)rank.begin(), BrokenInvariant) << "a file that no vote was about";
    EXPECT_FALSE(rank.sealing.write_seals());
    EXPECT_THROW((void)rank.sealing.begin_file(FileKind::parity, kKey, kGeneration, 100), BrokenInvariant)
        << "too small to be sealed";
  });
}

TEST_P(SealingOfRanks, WhatIsReadStaysUntilTheEnd) {
  run([&](Rank& rank) {
    (void)rank.begin();
    EXPECT_FALSE(rank.sealing.seal({}));
    const StoreFile& pinned = rank.sealing.pin(FileKind::container, rank.me(), kKey);
    const auto next = [&] {
      rank.store.retirement.retire_all_but([](const FileKey&) { return false; });
      StoreFile& file = rank.store.new_files.begin_file({FileKind::container, kBytes});
      rank.store.new_files.discard_file(file);
      return &file == &pinned;
    };
    EXPECT_FALSE(next()) << "it was overwritten while pinned";
    EXPECT_FALSE(rank.sealing.vote({}));
    EXPECT_FALSE(next());
    EXPECT_FALSE(rank.sealing.seal({}));
    rank.store.retirement.free_unused_storage();
    EXPECT_THROW(rank.store.files.unpin(const_cast<StoreFile&>(pinned)), Error) << "it is still pinned";  // NOLINT
  });
}

TEST_P(SealingOfRanks, OnlyWhatWasBegunIsSealedOrGivenUp) {
  run([&](Rank& rank) {
    StoreFile& file = rank.begin().file();
    EXPECT_FALSE(rank.sealing.seal({}));
    EXPECT_THROW(rank.store.new_files.mark_sealed(file, kKey, kGeneration), BrokenInvariant);
    EXPECT_THROW(rank.store.new_files.discard_file(file), BrokenInvariant);
    EXPECT_TRUE(rank.store.files.has_file(FileKind::container, rank.me(), kKey));
  });
}

INSTANTIATE_TEST_SUITE_P(Backings, SealingOfRanks, testing::Bool(),
                         [](const auto& test) { return test.param ? "Memory" : "Block"; });

TEST(Slot, GoesFromStateToStateAsAFileDoes) {
  using enum Slot::State;
  const std::set<std::pair<Slot::State, Slot::State>> possible{
      {free, writing},    {free, sealed},    {free, foreign},    {writing, sealed},
      {writing, free},    {sealed, retired}, {sealed, foreign},  {retired, sealed},
      {retired, writing}, {retired, free},   {retired, foreign}, {foreign, free}};
  for (const auto from : {free, writing, sealed, retired, foreign}) {
    for (const auto to : {free, writing, sealed, retired, foreign}) {
      Slot slot;
      slot.state = from;
      if (from == to || possible.contains({from, to})) {
        EXPECT_NO_THROW(slot.set_state(to));
      } else {
        EXPECT_THROW(slot.set_state(to), BrokenInvariant) << static_cast<int>(from) << " to " << static_cast<int>(to);
      }
    }
  }
  Slot pinned;
  pinned.state = retired;
  pinned.pin_count = 1;
  EXPECT_THROW(pinned.set_state(writing), BrokenInvariant);
}

}  // namespace
}  // namespace kedge::store::sealing_test
