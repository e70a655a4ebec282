// A recovery whose storage fails: the same outcome on all ranks, nothing is lost by it, and the next start is well.
#include <gtest/gtest.h>

#include <cerrno>

#include "base/text.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults {
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

TEST_P(RecoveryErrors, R31_EveryReadThatFailsOnceIsALossAndDestroysNothing) {
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

}  // namespace
}  // namespace kedge::faults
