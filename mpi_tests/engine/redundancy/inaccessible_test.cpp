// A container that cannot be opened, or not be read from its first byte, or from somewhere behind its header: it counts
// as lost, is rebuilt or fetched, and the next saves go on beside it.
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <ostream>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/obstacles.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::inaccessible_test {
namespace {

/// Files that are inaccessible: what is done to them is done to their bytes as well, or shows in their names.
class Bad {
 public:
  Bad(SimulatedJob& job, const Obstacle& obstacle, const std::vector<std::string>& paths) : job_(job) {
    for (const std::string& path : paths) {
      obstacle.put(job.disk, path);
      bytes_[path] = job.disk.read_all(path);
    }
  }
  /// They are as they were, or gone; in their place is nothing else.
  void expect_not_used_again() const {
    const auto now = job_.disk.snapshot();
    for (const auto& [path, bytes] : bytes_) {
      const auto found = now.find(path);
      EXPECT_TRUE(found == now.end() || found->second.bytes == bytes) << path << " was used again";
    }
  }

 private:
  SimulatedJob& job_;
  std::map<std::string, std::vector<std::byte>> bytes_;
};

std::vector<std::string> containers_of(const SimulatedJob& job, const std::vector<int>& ranks, const Tag& tag) {
  std::vector<std::string> paths;
  paths.reserve(ranks.size());
  for (const int rank : ranks) paths.push_back(container_of(job.disk, rank, tag));
  return paths;
}

/// A job of which the containers of some ranks become inaccessible, and where its state must come from then.
struct Case {
  std::string name;
  int job_ranks = 4;
  Scheme scheme = Scheme::single;
  bool persistent = false;
  std::vector<int> lost;
  int step = 2;  ///< of 2
  RecoverySource source = RecoverySource::in_place;

  /// For the names of tests.
  friend void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name; }
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"rebuilt_first", 4, Scheme::xor_, false, {0}, 2, RecoverySource::rebuilt},
      {"rebuilt_other", 4, Scheme::xor_, false, {2}, 2, RecoverySource::rebuilt},
      {"rebuilt_two", 4, Scheme::rs, false, {0, 2}, 2, RecoverySource::rebuilt},
      {"fetched_first", 4, Scheme::single, true, {0}, 2, RecoverySource::fetched},
      {"fetched_several", 4, Scheme::single, true, {0, 2, 3}, 2, RecoverySource::fetched},
      {"fetched_all", 2, Scheme::single, true, {0, 1}, 2, RecoverySource::fetched},
      {"fetched_of_one", 1, Scheme::single, true, {0}, 2, RecoverySource::fetched},
      {"too_many_for_parity", 4, Scheme::xor_, false, {1, 2}, 1, RecoverySource::in_place},
      {"stepped_back", 4, Scheme::single, false, {2}, 1, RecoverySource::in_place},
      {"stepped_back_several", 4, Scheme::single, false, {0, 3}, 1, RecoverySource::in_place},
      {"stepped_back_one", 1, Scheme::single, false, {0}, 1, RecoverySource::in_place},
  };
  return all;
}

class Inaccessible : public ::testing::TestWithParam<std::tuple<Case, bool>> {
 protected:
  [[nodiscard]] static DiskOptions disk() {
    return std::get<bool>(GetParam()) ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }
};

TEST_P(Inaccessible, ContainersAreLostAndTheNextSavesAreFine) {
  const Case& one = std::get<Case>(GetParam());
  for (const Obstacle& obstacle : obstacles()) {
    SCOPED_TRACE(obstacle.name);
    SimulatedJob job(one.job_ranks, disk());
    job.ranks_per_node = 1;
    job.options.redundancy.scheme = one.scheme;
    job.options.persistent.every = one.persistent ? 1 : 0;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    const Bad bad(job, obstacle, containers_of(job, one.lost, "b"));
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}, {"d", 4}, {"e", 5}});
    EXPECT_EQ(opened.step, one.step) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.info.source, one.source);
    bad.expect_not_used_again();
    const Opened again = reopen(job, latest, Newer::keep, {{"f", 6}});
    EXPECT_EQ(again.step, 5) << to_string(again.failure.value_or(Failure{}));
    EXPECT_EQ(again.info.source, RecoverySource::in_place);
    for (const int rank : one.lost) EXPECT_LE(container_files(job.disk, rank).size(), 3U);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Inaccessible, ::testing::Combine(::testing::ValuesIn(cases()), ::testing::Bool()),
                         [](const auto& each) {
                           return std::get<Case>(each.param).name + (std::get<bool>(each.param) ? "_memory" : "_disk");
                         });

class InaccessibleIdle : public ::testing::TestWithParam<bool> {};

TEST_P(InaccessibleIdle, AFileThatTurnsBadBetweenTwoSavesCostsNoneOfThem) {
  for (const Obstacle& obstacle : obstacles()) {
    SCOPED_TRACE(obstacle.name);
    SimulatedJob job(2, GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk());
    job.ranks_per_node = 1;
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
  job.surroundings = [&](int, start::Environment& environment) {
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

INSTANTIATE_TEST_SUITE_P(On, InaccessibleIdle, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "memory" : "disk"; });

}  // namespace
}  // namespace kedge::faults::inaccessible_test
