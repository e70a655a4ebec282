// A recovery whose storage fails, at every operation once: the same outcome on all ranks, nothing is lost by it,
// nothing rebuilt from a false byte, and the next start is well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <span>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::recovery_errors_test {
namespace {

constexpr int kRanks = 4;

enum class Need { rebuild, move, both };

struct Case {
  Need need = Need::rebuild;
  Scheme scheme = Scheme::xor_;
};

class RecoveryErrors : public testing::TestWithParam<Case> {
 protected:
  RecoveryErrors() : job(kRanks) {
    job.options.redundancy.scheme = GetParam().scheme;
    place(job, {"n0", "n1", "n2", "n3"});
    commit_steps(job, {{"a", 1}, {"b", 2}});
    if (GetParam().need != Need::rebuild) place(job, {"n1", "n2", "n3", "n0"});
    if (GetParam().need != Need::move) job.disk.remove_all("/nodes/n2");
    start_point = job.disk.snapshot();
  }

  /// Reads of a rank until the checkpoint is open: those of a load that fails are another test's.
  std::uint64_t count_reads(int rank) {
    std::uint64_t reads = 0;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      if (scope.rank == rank) reads = job.disk.reads(rank);
    }));
    return reads;
  }

  void expect_well() {
    const Opened opened = reopen(job);
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.step, 2);
    EXPECT_EQ(opened.level, Level::protected_);
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string node = GetParam().need == Need::rebuild ? compose("n{}", rank) : compose("n{}", (rank + 1) % 4);
      std::size_t containers = 0;
      for (const std::string& file : files_in(job.disk, node)) {
        containers += file.starts_with(compose("rank-{}.", rank)) ? 1U : 0U;
      }
      EXPECT_LE(containers, 2U);
    }
  }

  SimulatedJob job;
  FaultyDisk::Snapshot start_point;
};

INSTANTIATE_TEST_SUITE_P(Storage, RecoveryErrors,
                         testing::Values(Case{Need::rebuild, Scheme::xor_}, Case{Need::rebuild, Scheme::partner},
                                         Case{Need::move, Scheme::xor_}, Case{Need::both, Scheme::xor_}),
                         [](const auto& one) {
                           return compose("{}_{}", to_string(one.param.scheme), static_cast<int>(one.param.need));
                         });

TEST_P(RecoveryErrors, EveryOperationThatFailsOnceIsTriedAgainOrToldOnAllRanks) {
  for (const std::size_t victim : {1U, 2U}) {
    bool struck = true;
    for (std::uint64_t n = 1; struck; ++n) {
      SCOPED_TRACE(compose("rank {}, operation {}", victim, n));
      job.disk.restore(start_point);
      job.disk.fail(static_cast<int>(victim), n, EIO);
      const Opened opened = reopen(job);
      struck = job.operations.at(victim) >= n;
      if (opened.failure) {
        EXPECT_EQ(opened.failure->code, ErrorCode::io) << to_string(*opened.failure);
      } else {
        EXPECT_EQ(opened.step, 2);
      }
      expect_well();
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(RecoveryErrors, EveryReadThatFailsOnceIsALossAndDestroysNothing) {
  constexpr int kVictim = 1;
  const std::uint64_t reads = count_reads(kVictim);
  ASSERT_GT(reads, 10U);
  for (std::uint64_t n = 1; n <= reads; ++n) {
    SCOPED_TRACE(compose("read {} of {}", n, reads));
    job.disk.restore(start_point);
    job.disk.fail_read(kVictim, n, EIO);
    const Opened opened = reopen(job);
    if (opened.failure) {
      const bool both = GetParam().need != Need::move && opened.failure->code == ErrorCode::unrecoverable;
      EXPECT_TRUE(both || opened.failure->code == ErrorCode::io) << to_string(*opened.failure);
    } else if (GetParam().need == Need::move) {
      EXPECT_EQ(opened.step, 2);  // one loss is made good
    } else {
      EXPECT_TRUE(opened.step == 2 || opened.step == 1) << opened.step;  // a node and what could not be read: two
    }
    expect_well();
    if (HasFatalFailure()) return;
  }
}

TEST_P(RecoveryErrors, NoRoomIsToldOnAllRanksAndRoomIsEnough) {
  const std::string small = GetParam().need == Need::rebuild ? "/nodes/n2" : "/nodes/n0";
  Volume volume;
  volume.memory_backed = true;
  volume.capacity_bytes = std::uint64_t{16} << 20U;
  job.disk.remove_all(small);
  job.disk.make_directories(small, 0755);
  job.disk.set_volume(small, volume);
  for (const std::uint64_t room : {10'000U, 100'000U}) {
    job.disk.restore(start_point);
    job.disk.make_directories(small, 0755);
    const std::uint64_t used = job.disk.used_bytes(small);
    job.disk.write_all(small + "/filler", std::vector<std::byte>(volume.capacity_bytes - used - room));
    const Opened opened = reopen(job);
    ASSERT_TRUE(opened.failure) << opened.step;
    EXPECT_EQ(opened.failure->code, ErrorCode::no_space) << to_string(*opened.failure);
    job.disk.remove_all(small + "/filler");
    expect_well();
  }
}

/// Rank 0's container of "b" is lost, and the copy of it that its partner keeps is another than it was. Its checksum
/// fits: whoever made it made that, too.
class RebuiltByALie : public testing::Test {
 protected:
  RebuiltByALie() : job(kRanks) {
    job.options.redundancy.scheme = Scheme::partner;
    job.options.store.keep = 2;
    place(job, {"n0", "n1", "n2", "n3"});
    commit_steps(job, {{"a", 1}, {"b", 2}});
  }
  Opened reopen_with(const std::function<void(std::span<std::byte> container)>& change) {
    const Id128 commit_id = superblock_of(job.disk, 0, "b").commit.id;
    for (SetFile& file : set_files(job.disk, format::SetFileKind::parity, commit_id)) {
      if (file.set.members.at(1 - file.set.position).logical_rank.value != 0) continue;
      std::vector<std::byte> bytes = job.disk.read_all(file.path);
      const std::span copy = std::span(bytes).subspan(format::kSuperblockBytes);
      change(copy);
      file.set.parity_crc = crc32c(copy);
      std::ranges::copy(format::encode_set_descriptor(file.set), bytes.begin());
      job.disk.write_all(file.path, bytes);
    }
    job.disk.remove_all("/nodes/n0");
    return reopen(job);
  }
  static void change_head(std::span<std::byte> container, const std::function<void(format::Superblock&)>& change) {
    format::Superblock superblock = format::decode_superblock(container.first(format::kSuperblockBytes), "the copy");
    change(superblock);
    std::ranges::copy(format::encode_superblock(superblock), container.begin());
  }
  SimulatedJob job;
};

TEST_F(RebuiltByALie, AContainerIsTakenIfItIsTheRightOne) {
  const Opened opened = reopen_with([](std::span<std::byte> container) { change_head(container, [](auto&) {}); });
  EXPECT_EQ(opened.step, 2);
  EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
}

TEST_F(RebuiltByALie, AContainerWithAnotherChecksumIsRefused) {
  const Opened opened =
      reopen_with([](std::span<std::byte> container) { container[container.size() / 2] ^= std::byte{1}; });
  EXPECT_EQ(opened.step, 1);
  EXPECT_TRUE(job.logged("could not be recovered"));
}

/// The checksum of a container says nothing of its first bytes, which end with their own.
TEST_F(RebuiltByALie, AContainerOfAnotherRankOrCommitIsRefused) {
  const std::vector<std::function<void(format::Superblock&)>> changes = {
      [](auto& superblock) { superblock.commit.run_id.bytes[0] ^= 1; },
      [](auto& superblock) { superblock.commit.id.bytes[0] ^= 1; },
      [](auto& superblock) { ++superblock.commit.generation; },
      [](auto& superblock) { ++superblock.commit.world_size; },
      [](auto& superblock) { superblock.logical_rank = LogicalRank{1}; },
  };
  const auto committed = job.disk.snapshot();
  for (const auto& change : changes) {
    SCOPED_TRACE(&change - changes.data());
    job.disk.restore(committed);
    const Opened opened = reopen_with([&](std::span<std::byte> container) { change_head(container, change); });
    EXPECT_EQ(opened.step, 1);
    EXPECT_TRUE(job.logged("could not be recovered"));
  }
}

}  // namespace
}  // namespace kedge::faults::recovery_errors_test
