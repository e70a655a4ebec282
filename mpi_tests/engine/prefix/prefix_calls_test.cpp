// What ranks ask of the parallel filesystem, whose metadata server serves all of them: as much in a large job as in a
// small one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::prefix_calls_test {
namespace {

/// Calls that name something below the prefix, by rank.
class Calls {
 public:
  void note(int rank, const std::string& path) {
    if (!path.starts_with("/prefix")) return;
    const std::lock_guard guard(mutex_);
    ++counts_[rank];
  }
  /// Of rank 0, and the most of another rank, since the last call of this.
  std::pair<int, int> take() {
    const std::lock_guard guard(mutex_);
    int others = 0;
    for (const auto& [rank, count] : counts_) others = rank == 0 ? others : std::max(others, count);
    const std::pair taken(counts_[0], others);
    counts_.clear();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::map<int, int> counts_;
};

class Counted final : public ForwardingFileSystem {
 public:
  Counted(std::shared_ptr<fs::FileSystem> inner, int rank, Calls& calls)
      : ForwardingFileSystem(std::move(inner)), rank_(rank), calls_(calls) {}

  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    calls_.note(rank_, path);
    return inner().open(path, access);
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    calls_.note(rank_, path);
    return inner().create(path, mode);
  }
  void remove(const std::string& path) override {
    calls_.note(rank_, path);
    inner().remove(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    calls_.note(rank_, from);
    inner().rename(from, to);
  }
  void make_directory(const std::string& path, std::uint32_t mode) override {
    calls_.note(rank_, path);
    inner().make_directory(path, mode);
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& path) override {
    calls_.note(rank_, path);
    return inner().list(path);
  }
  [[nodiscard]] std::optional<fs::FileStatus> status(const std::string& path) override {
    calls_.note(rank_, path);
    return inner().status(path);
  }
  void sync_directory(const std::string& path) override {
    calls_.note(rank_, path);
    inner().sync_directory(path);
  }
  [[nodiscard]] fs::Space space(const std::string& path) override {
    calls_.note(rank_, path);
    return inner().space(path);
  }

 private:
  int rank_;
  Calls& calls_;
};

/// Calls in each phase: a start, two flushes, the end, a start with nothing in the stores.
std::vector<std::pair<int, int>> calls_of_a_job(int ranks) {
  SimulatedJob job(ranks);
  job.options.persistent.every = 1;
  Calls calls;
  std::vector<std::pair<int, int>> found;
  job.surroundings = [&](int rank, start::Environment& environment) {
    environment.mounts = "mnt:[1]";
    environment.file_system = std::make_shared<Counted>(environment.file_system, rank, calls);
  };
  const auto phase = [&](RankScope& scope) {
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 0) found.push_back(calls.take());
    scope.communicator.barrier(Deadline::never());
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    phase(scope);
    commit_step(engine, scope.rank, "a", 1);
    phase(scope);
    commit_step(engine, scope.rank, "b", 2);
    phase(scope);
    engine.finalize();
    phase(scope);
  }));
  job.disk.remove_all("/nodes");
  job.disk.make_directories("/nodes");
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open();
    engine.close();
    phase(scope);
  }));
  return found;
}

TEST(PrefixCalls, AreTheSameForARankOfALargeJob) {
  const auto small = calls_of_a_job(4);
  for (const int ranks : {10, 24}) {
    const auto large = calls_of_a_job(ranks);
    EXPECT_EQ(large, small) << ranks;
  }
  // A start reads the record of rank 0's, a flush makes a file; a fetch looks at the manifest, at what lies on the way
  // to the container, and at the container.
  std::vector<int> others;
  for (const auto& [of_root, most] : small) others.push_back(most);
  EXPECT_EQ(others, (std::vector<int>{1, 1, 1, 0, 7}));
}

}  // namespace
}  // namespace kedge::faults::prefix_calls_test
