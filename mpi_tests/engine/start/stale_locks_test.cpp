// Locks in a store that cannot be opened: nobody can ask who holds them, so the start stops and says which file it is.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "fs/system_error.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"
#include "store/store_lock.hpp"

namespace kedge::faults::stale_locks_test {
namespace {

struct Obstacle {
  std::string name;
  std::function<void(FaultyDisk&, const std::string& path)> put;
};

void deny(FaultyDisk& disk, const std::string& path) {
  auto status = disk.snapshot().at(path).status;
  status.mode = 0;
  disk.plant(path, status);
}

const std::vector<Obstacle>& obstacles() {
  static const std::vector<Obstacle> all = {
      {"no permission", deny},
      {"EIO", [](FaultyDisk& disk, const std::string& path) { disk.refuse_open(path); }},
  };
  return all;
}

/// Too many files are open: it is not the lock's fault.
class OutOfFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  std::optional<std::string> lock_holder(const std::string& path) override {
    fs::throw_system_error("open the lock file", path, EMFILE);
  }
};

class StaleLocks : public ::testing::Test {
 protected:
  StaleLocks() { commit_steps(job, {{"a", 1}}); }
  [[nodiscard]] std::string lock_of(const std::string& node, const std::string& name) const {
    return run_directory_of(job.disk, node) + "/" + name;
  }
  Failure expect_refused(const std::string& path) {
    auto failure = reopen(job).failure.value_or(Failure{});
    EXPECT_EQ(failure.code, ErrorCode::io) << to_string(failure);
    EXPECT_EQ(failure.path, path);
    EXPECT_TRUE(says(failure.message, {"cannot tell", "has ended", "remove this file"})) << failure.message;
    return failure;
  }

  SimulatedJob job{4};
};

TEST_F(StaleLocks, OneThatCannotBeOpenedIsNamedAndWithoutItTheJobGoesOn) {
  const auto before = job.disk.snapshot();
  for (const Obstacle& obstacle : obstacles()) {
    for (const int rank : {0, 3}) {
      SCOPED_TRACE(compose("{}, rank {}", obstacle.name, rank));
      job.disk.restore(before);
      const std::string path = lock_of(rank == 0 ? "node0" : "node1", compose("lock.1.{}", rank));
      obstacle.put(job.disk, path);
      for (int start = 0; start < 2; ++start) EXPECT_GE(expect_refused(path).rank, rank - 1) << "of that node";
      EXPECT_FALSE(job.disk.snapshot().contains("/prefix/.kedge/test/begun-2"));
      job.disk.remove_all(path);
      EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).step, 1);
      EXPECT_EQ(reopen(job).step, 2);
    }
  }
}

/// Its process opened it before; to remove it is for who knows that the job has ended.
TEST_F(StaleLocks, OfAJobThatStillRunsKeepsTheNextOneOut) {
  FakeClock clock;
  const std::string store = run_directory_of(job.disk, "node1");
  {
    const store::StoreLock running(job.disk.view(50), store, 1, 3, clock, 0);
    deny(job.disk, store + "/lock.1.3");
    expect_refused(store + "/lock.1.3");
  }
  EXPECT_TRUE(job.disk.snapshot().contains(store + "/lock.1.3"));
}

/// Left by a start whose number this one has again.
TEST_F(StaleLocks, UnderThisStartsOwnNameIsRefusedInTheSameWords) {
  const std::string path = lock_of("node1", "lock.2.2");
  job.disk.write_all(path, {});
  deny(job.disk, path);
  expect_refused(path);
  job.disk.remove_all(path);
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(StaleLocks, AreNotToBeRemovedBecauseTooManyFilesAreOpen) {
  job.surroundings = [](int, start::Environment& environment) {
    environment.file_system = std::make_shared<OutOfFiles>(environment.file_system);
  };
  const auto failure = reopen(job).failure.value_or(Failure{});
  EXPECT_EQ(failure.code, ErrorCode::no_space) << to_string(failure);
  EXPECT_TRUE(says(failure.message, {"ulimit -n"})) << failure.message;
  EXPECT_FALSE(says(failure.message, {"remove"})) << failure.message;
}

}  // namespace
}  // namespace kedge::faults::stale_locks_test
