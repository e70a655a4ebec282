// Four ranks with two commits, for tests that restore them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "base/attempt.hpp"
#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::restore_job {

inline constexpr int kRanks = 4;
inline constexpr std::size_t kLarge = 20'000;

/// What one rank's program has in memory.
struct Variables {
  int step = -1;
  std::vector<double> large;
  std::vector<std::int32_t> small;
  std::array<double, 3> last{};

  static Variables of(int rank, int step) {
    Variables it;
    it.step = step;
    it.large.resize(kLarge);
    std::iota(it.large.begin(), it.large.end(), 1000.0 * step + rank);
    it.small.assign(7, 10 * step + rank);
    it.last = {1.0 * step, 2.0 * rank, 3.0};
    return it;
  }
  [[nodiscard]] State state() {
    State state;
    state.add("step", step).add("large", large).add("small", small).add("last", last);
    return state;
  }
  bool operator==(const Variables&) const = default;
};

/// Commits "a" (step 1) and "b" (step 2), each rank on a node of its own. The starts after it keep one commit only, so
/// that whoever opens "b" gives "a" up.
struct Job : SimulatedJob {
  explicit Job(bool protects, PipelineMode mode = PipelineMode::inline_, DiskOptions storage = memory_disk())
      : SimulatedJob(kRanks, storage) {
    ranks_per_node = 1;
    options.redundancy.scheme = Scheme::xor_;
    options.redundancy.every = protects ? 1 : 0;
    options.pipeline.mode = mode;
    options.store.keep = 2;
    expect_all_returned(start([](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 1; step <= 2; ++step) {
        auto mine = Variables::of(scope.rank, step);
        engine.checkpoint(step == 1 ? "a" : "b", mine.state());
      }
      engine.finalize();
    }));
    options.store.keep = 1;
  }
};

struct Restored {
  std::optional<Tag> tag;
  RecoverySource source = RecoverySource::in_place;
  std::optional<Failure> failure;
};

/// One start that restores and ends; all ranks have the same, and the bytes of the step that the tag names.
inline Restored restore(SimulatedJob& job, const std::function<void(RankScope&, Engine&)>& then = {}) {
  std::vector<Restored> all(kRanks);
  expect_all_returned(job.start([&](RankScope& scope) {
    Restored& mine = all[static_cast<std::size_t>(scope.rank)];
    mine.failure = attempt([&] {
      Engine engine = scope.make_engine();
      Variables variables;
      mine.tag = engine.restore(variables.state());
      if (!mine.tag) return;
      mine.source = engine.info().source;
      EXPECT_TRUE(variables == Variables::of(scope.rank, *mine.tag == "a" ? 1 : 2)) << "rank " << scope.rank;
      if (then) then(scope, engine);
    });
  }));
  for (const Restored& other : all) {
    EXPECT_EQ(other.tag, all[0].tag);
    EXPECT_EQ(other.failure.has_value(), all[0].failure.has_value());
    EXPECT_EQ(other.failure ? other.failure->message : "", all[0].failure ? all[0].failure->message : "");
  }
  return all[0];
}

inline std::uint64_t bytes_of_containers(const SimulatedJob& job, const Tag& tag) {
  std::uint64_t bytes = 0;
  for (int rank = 0; rank < kRanks; ++rank) bytes += superblock_of(job.disk, rank, tag).file_size;
  return bytes;
}

}  // namespace kedge::faults::restore_job
