// Stores with room for what a job needs and nothing else: what is made ready ahead must not be missed later.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::tight_store_test {
namespace {

class TightStore : public testing::Test {
 protected:
  struct Sizes {
    std::uint64_t container = 0;
    std::uint64_t all = 0;  ///< with its protection
  };

  static constexpr int kRanks = 4;

  TightStore() { set(job); }

  static void set(SimulatedJob& job) {
    job.ranks_per_node = 1;
    job.options.redundancy.scheme = Scheme::xor_;
  }
  static void save(Engine& engine, std::size_t step, std::size_t doubles) {
    std::vector<double> values(doubles);
    std::iota(values.begin(), values.end(), static_cast<double>(step));
    State state;
    state.add("values", values);
    engine.checkpoint(compose("s{}", step), state);
  }
  static Sizes sizes_of(std::size_t doubles) {
    SimulatedJob job(kRanks);
    set(job);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      save(engine, 0, doubles);
      engine.finalize();
    }));
    const auto size_of = [&](const std::string& path) { return job.disk.read_all(path).size(); };
    Sizes sizes{size_of(container_of(job.disk, 0, "s0")), 0};
    sizes.all = sizes.container + size_of(set_file_of(job.disk, format::SetFileKind::parity, 0, "s0")) +
                size_of(set_file_of(job.disk, format::SetFileKind::descriptor, 0, "s0"));
    return sizes;
  }

  /// The level that each of these checkpoints had when it was made. None may fail.
  std::vector<Level> levels_of(const std::vector<std::size_t>& doubles) {
    std::vector<Level> levels(doubles.size());
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (std::size_t step = 0; step < doubles.size(); ++step) {
        save(engine, step, doubles[step]);
        if (step == 0 && job.options.redundancy.every == 0) engine.wait("s0", Level::protected_);
        if (scope.rank == 0) levels[step] = engine.level(compose("s{}", step));
      }
    }));
    return levels;
  }

  SimulatedJob job{kRanks};
};

TEST_F(TightStore, TheOlderProtectedOneAndTwoMoreContainersFit) {
  const Sizes sizes = sizes_of(10'000);
  job.options.store.quota_bytes = sizes.all + 2 * sizes.container + 20'000;
  for (const std::uint32_t every : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(every);
    job.options.redundancy.every = every;
    job.options.run = compose("every-{}", every);
    const auto levels = levels_of(std::vector<std::size_t>(7, 10'000));
    EXPECT_EQ(std::ranges::count(levels, Level::none), 0);
    EXPECT_GE(std::ranges::count(levels, Level::protected_), 1);
  }
}

TEST_F(TightStore, ACommitWithoutAnOpenTakesTheRoomOfWhatIsSuperseded) {
  job.options.redundancy.scheme = Scheme::single;
  job.options.store.quota_bytes = 2 * sizes_of(10'000).container + 20'000;
  for (const std::size_t first : {0U, 2U, 4U}) {
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      save(engine, first, 10'000);
      save(engine, first + 1, 10'000);
    }));
  }
}

TEST_F(TightStore, ALargerOneFitsBesideASmallerOneAndItsProtection) {
  const Sizes small = sizes_of(10'000);
  const Sizes large = sizes_of(15'000);
  job.options.store.quota_bytes = small.all + large.container + 20'000;
  EXPECT_EQ(levels_of({10'000, 15'000}), (std::vector{Level::protected_, Level::local}));
}

}  // namespace
}  // namespace kedge::faults::tight_store_test
