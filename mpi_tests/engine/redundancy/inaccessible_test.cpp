// A container that cannot be opened, or not be read from its first byte, or from somewhere behind its header: it counts
// as lost, is rebuilt or fetched, and the next saves go on beside it.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <vector>

#include "base/text.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/set_files.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {
namespace {

struct Obstacle {
  std::string name;
  std::function<void(FaultyDisk&, const std::string& path)> put;
};

const std::vector<Obstacle>& obstacles() {
  static const std::vector<Obstacle> all = {
      {"no permission",
       [](FaultyDisk& disk, const std::string& path) {
         auto status = disk.snapshot().at(path).status;
         status.mode = 0;
         disk.plant(path, status);
       }},
      {"can only be read",
       [](FaultyDisk& disk, const std::string& path) {
         auto status = disk.snapshot().at(path).status;
         status.mode = 0400;
         disk.plant(path, status);
       }},
      {"cannot be opened", [](FaultyDisk& disk, const std::string& path) { disk.refuse_open(path); }},
      {"no byte can be read", [](FaultyDisk& disk, const std::string& path) { disk.make_unreadable(path, 0); }},
      {"the index cannot be read", [](FaultyDisk& disk, const std::string& path) { disk.make_unreadable(path, 4096); }},
      {"the end cannot be read",
       [](FaultyDisk& disk, const std::string& path) { disk.make_unreadable(path, disk.read_all(path).size() - 1); }},
  };
  return all;
}

struct Kind {
  bool memory = false;
  Scheme scheme = Scheme::xor_;  // single: the prefix helps
};

class Inaccessible : public ::testing::TestWithParam<Kind> {};

TEST_P(Inaccessible, ContainersAreRebuiltOrFetchedAndTheNextSavesAreFine) {
  for (const Obstacle& obstacle : obstacles()) {
    for (const std::vector<int>& ranks : {std::vector<int>{0}, std::vector<int>{2}}) {
      SCOPED_TRACE(compose("{}, rank {}", obstacle.name, ranks.front()));
      SimulatedJob job(4, GetParam().memory ? SimulatedJob::memory_disk() : SimulatedJob::block_disk());
      job.options.topology.ranks_per_node = 1;
      job.options.redundancy.scheme = GetParam().scheme;
      if (GetParam().scheme == Scheme::single) job.options.persistent.every = 1;
      commit_steps(job, {{"a", 1}, {"b", 2}});
      for (const int rank : ranks) obstacle.put(job.disk, container_of(job.disk, rank, "b"));
      const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}, {"d", 4}, {"e", 5}});
      EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
      EXPECT_EQ(opened.step, 2);
      const Opened again = reopen(job, latest, Newer::keep, {{"f", 6}});
      EXPECT_EQ(again.step, 5) << to_string(again.failure.value_or(Failure{}));
      EXPECT_EQ(reopen(job).step, 6);
      EXPECT_LE(container_files(job.disk, ranks.front()).size(), 3U);
    }
  }
}

TEST_P(Inaccessible, AFileThatTurnsBadBetweenTwoSavesCostsNoneOfThem) {
  for (const Obstacle& obstacle : obstacles()) {
    SCOPED_TRACE(obstacle.name);
    SimulatedJob job(2, GetParam().memory ? SimulatedJob::memory_disk() : SimulatedJob::block_disk());
    job.options.topology.ranks_per_node = 1;
    job.options.redundancy.scheme = Scheme::single;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    // Rank 1's files, but for the one of the newest commit, are where the next save would go.
    const std::string newest = container_of(job.disk, 1, "b");
    for (const std::string& path : container_files(job.disk, 1)) {
      if (path != newest) obstacle.put(job.disk, path);
    }
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}, {"d", 4}});
    EXPECT_EQ(opened.step, 2) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(reopen(job).step, 4);
  }
}

/// A directory that cannot be brought to stable storage, for a while.
class UnsyncedDirectory final : public ForwardingFileSystem {
 public:
  UnsyncedDirectory(std::shared_ptr<fs::FileSystem> inner, const bool& fails)
      : ForwardingFileSystem(std::move(inner)), fails_(fails) {}
  void sync_directory(const std::string& path) override {
    if (fails_) throw Error(Failure{ErrorCode::io, "the directory is not on stable storage", -1, path, EIO});
    inner().sync_directory(path);
  }

 private:
  const bool& fails_;
};

TEST(InaccessibleDirectory, ADirectoryThatCannotBeSyncedIsHeldAgainstNoFile) {
  SimulatedJob job(1, SimulatedJob::block_disk());
  job.options.store.durable = true;
  job.options.redundancy.scheme = Scheme::single;
  bool fails = false;
  job.surroundings = [&](int, engine::Environment& environment) {
    environment.file_system = std::make_shared<UnsyncedDirectory>(environment.file_system, fails);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 3; ++step) commit_step(engine, 0, compose("a{}", step), step);
    const std::size_t before = container_files(job.disk, 0).size();
    fails = true;
    for (int i = 0; i < 3; ++i) EXPECT_THROW(engine.create("b"), Error);
    fails = false;
    for (int step = 4; step <= 6; ++step) commit_step(engine, 0, compose("a{}", step), step);
    EXPECT_EQ(container_files(job.disk, 0).size(), before);
  }));
}

INSTANTIATE_TEST_SUITE_P(Of, Inaccessible,
                         ::testing::Values(Kind{false, Scheme::xor_}, Kind{false, Scheme::single},
                                           Kind{true, Scheme::xor_}, Kind{true, Scheme::single}),
                         [](const auto& kind) {
                           return std::string(kind.param.memory ? "memory" : "disk") +
                                  (kind.param.scheme == Scheme::xor_ ? "_rebuilt" : "_fetched");
                         });

}  // namespace
}  // namespace kedge::faults
