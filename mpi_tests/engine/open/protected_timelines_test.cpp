// Two histories that share tags and numbers, each with parity of its own, are never combined; a recovery from the
// stores reads no checkpoint data from the prefix.
#include <gtest/gtest.h>

#include <string_view>

#include "base/text.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::protected_timelines_test {
namespace {

/// Both are protected; one rank per node.
struct Fork : TwoTimelines {
  Fork(int ranks, Scheme scheme, std::uint32_t set_size)
      : TwoTimelines(ranks, [&](SimulatedJob& configured) {
          configured.ranks_per_node = 1;
          configured.options.redundancy.scheme = scheme;
          configured.options.redundancy.set_size = set_size;
        }) {}

  /// The files of these nodes are the first timeline's, of the others the second's.
  void mix(unsigned of_first) {
    job.disk.restore(second);
    for (int node = 0; node < job.ranks; ++node) {
      if ((of_first >> static_cast<unsigned>(node) & 1U) != 0) job.disk.restore(first, store_of(node));
    }
  }
  /// Only files whose name begins like this are the first timeline's.
  void mix_files(std::string_view prefix) {
    job.disk.restore(second);
    for (const auto& [path, entry] : second) {
      if (path.find(compose("/{}-", prefix)) != std::string::npos) job.disk.remove_all(path);
    }
    for (const auto& [path, entry] : first) {
      if (path.find(compose("/{}-", prefix)) != std::string::npos) job.disk.write_all(path, entry.bytes);
    }
  }
};

TEST(ProtectedTimelines, EveryMixOfNodesWithAndWithoutALossGivesOneTimelineOrTheirBase) {
  constexpr int kNodes = 4;
  for (const Scheme scheme : {Scheme::xor_, Scheme::partner}) {
    Fork fork(kNodes, scheme, 8);
    const auto sets = sets_of(fork.job.disk, "next");
    for (unsigned pattern = 0; pattern < 1U << kNodes; ++pattern) {
      for (int lost = -1; lost < kNodes; ++lost) {
        SCOPED_TRACE(compose("{}, of the first {:b}, lost {}", to_string(scheme), pattern, lost));
        fork.mix(pattern);
        if (lost >= 0) fork.job.disk.remove_all(store_of(lost));
        // A timeline can be had iff no set lacks more than one member of it.
        const auto can_be_recovered = [&](bool of_first) {
          for (const auto& set : sets) {
            int missing = 0;
            for (const int rank : set) {
              const bool is_first = (pattern >> static_cast<unsigned>(rank) & 1U) != 0;
              if (rank == lost || is_first != of_first) ++missing;
            }
            if (missing > 1) return false;
          }
          return true;
        };
        const Opened opened = reopen(fork.job);
        ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
        const bool first = can_be_recovered(true);
        const bool second = can_be_recovered(false);
        if (first && second) EXPECT_TRUE(opened.step == 20 || opened.step == 30) << opened.step;
        else EXPECT_EQ(opened.step, first ? 20 : second ? 30 : 1);
        EXPECT_EQ(opened.level, Level::protected_);
      }
    }
  }
}

TEST(ProtectedTimelines, WholeSetsOfTwoTimelinesAreNoCommit) {
  Fork fork(8, Scheme::xor_, 4);
  const auto sets = sets_of(fork.job.disk, "next");
  ASSERT_EQ(sets.size(), 2U);
  unsigned of_first = 0;
  for (const int rank : sets[0]) of_first |= 1U << static_cast<unsigned>(rank);
  fork.mix(of_first);
  const Opened opened = reopen(fork.job);
  EXPECT_EQ(opened.step, 1);
  EXPECT_TRUE(fork.job.logged("skipped next"));
}

TEST(ProtectedTimelines, ParityOfOneTimelineDoesNotRebuildContainersOfTheOther) {
  for (const Scheme scheme : {Scheme::xor_, Scheme::partner}) {
    for (const std::string_view of_first : {"parity", "rank"}) {
      Fork fork(4, scheme, 8);
      fork.mix_files(of_first);
      const auto mixed = fork.job.disk.snapshot();
      EXPECT_EQ(reopen(fork.job).step, of_first == "rank" ? 20 : 30) << "all containers are there";
      fork.job.disk.restore(mixed);
      fork.job.disk.remove_all(container_of(fork.job.disk, 1, "next"));
      const Opened opened = reopen(fork.job);
      ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
      // Copies of all containers of one timeline are that timeline.
      const int of_parity = of_first == "rank" ? 30 : 20;
      EXPECT_EQ(opened.step, scheme == Scheme::partner ? of_parity : 1);
      EXPECT_EQ(opened.level, Level::protected_);
    }
  }
}

TEST(ProtectedTimelines, BothTimelinesOnEveryNodeGiveOneWholeOneEvenAfterALoss) {
  Fork fork(4, Scheme::xor_, 8);
  for (const auto& [path, entry] : fork.first) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!name.starts_with("rank-") && !name.starts_with("parity-") && !name.starts_with("set-")) continue;
    // Beside the second's: another number.
    const auto dot = path.rfind('.');
    fork.job.disk.write_all(path.substr(0, dot) + "7" + path.substr(dot), entry.bytes);
  }
  fork.job.disk.remove_all(store_of(2));
  const Opened opened = reopen(fork.job);
  ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
  EXPECT_TRUE(opened.step == 20 || opened.step == 30) << opened.step;
  fork.job.disk.remove_all(store_of(0));
  EXPECT_EQ(reopen(fork.job).step, opened.step);
}

TEST(Prefix, RecoveryReadsNoCheckpointDataFromIt) {
  for (const Scheme scheme : {Scheme::xor_, Scheme::partner}) {
    SimulatedJob job(8);
    job.options.redundancy.scheme = scheme;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    const std::uint64_t container_bytes = job.disk.read_all(container_of(job.disk, 0, "b")).size();
    job.disk.remove_all(store_of(1));
    const std::uint64_t prefix_before = job.disk.bytes_read("/prefix");
    const std::uint64_t stores_before = job.disk.bytes_read("/nodes");
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 2);
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
    // Run record, incarnation and nonce.
    const std::uint64_t prefix_bytes = job.disk.bytes_read("/prefix") - prefix_before;
    EXPECT_GT(prefix_bytes, 0U) << "the counter counts";
    EXPECT_LE(prefix_bytes, 4096U);
    EXPECT_GT(job.disk.bytes_read("/nodes") - stores_before, 8 * container_bytes);
  }
}

}  // namespace
}  // namespace kedge::faults::protected_timelines_test
