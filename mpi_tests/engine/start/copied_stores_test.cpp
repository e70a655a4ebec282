// Stores of whole jobs that were copied or exchanged, as cp -r and mv do it: by name and record each is somebody's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"

namespace kedge::faults::copied_stores_test {
namespace {

class CopiedStores : public RightRun {
 protected:
  /// The run's store on a node; the test fails if there are several.
  [[nodiscard]] std::string store(const std::string& node) const {
    const std::string start = compose("/nodes/{}/kedge-1000-main-", node);
    std::vector<std::string> found;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path.starts_with(start) && path.find('/', start.size()) == std::string::npos) found.push_back(path);
    }
    EXPECT_EQ(found.size(), 1U) << node;
    return found.empty() ? "" : found.front();
  }
  void expect_step(int step, const Steps& then = {}) {
    const Opened opened = reopen(job, latest, Newer::keep, then);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.step, step);
  }
};

/// A backup of all stores beside them, under a name as Kedge gives it and under one that says what it is.
TEST_F(CopiedStores, UnderAnotherNameTheyAreNeitherReadNorWritten) {
  local_only();
  commit_steps(job, {{"a", 1}});
  const std::vector<std::string> stores{store("node0"), store("node1")};
  std::vector<std::string> backups;
  for (const std::string& one : stores) {
    backups.push_back(one + ".bak");
    backups.push_back(one.substr(0, one.size() - 8) + "00000000");
    copy(one, backups[backups.size() - 2]);
    copy(one, backups.back());
  }
  const auto before = job.disk.snapshot();
  expect_step(1, {{"b", 2}, {"c", 3}});
  expect_step(3);
  for (const auto& [path, entry] : before) {
    if (path.find(".bak") == std::string::npos && path.find("00000000") == std::string::npos) continue;
    EXPECT_EQ(job.disk.snapshot().at(path).bytes, entry.bytes) << path;
  }
  // Nor are they what adopting finds.
  lose_prefix();
  EXPECT_EQ(expect_refused(ErrorCode::mismatch).path, stores.front());
  job.options.start = StartMode::adopt;
  expect_step(3);
  // Without the stores the run does not begin again in silence, and with a backup in their place it goes on from that.
  job.options.start = StartMode::continue_;
  for (const std::string& one : stores) job.disk.remove_all(one);
  (void)expect_refused(ErrorCode::unrecoverable);
  for (const std::string& one : stores) {
    job.disk.remove_all(one);
    move(one + ".bak", one);
  }
  expect_step(1);
}

TEST_F(CopiedStores, OfTwoNodesThatWereExchangedAreMovedBack) {
  for (const auto scheme : {Scheme::single, Scheme::partner}) {
    SCOPED_TRACE(to_string(scheme));
    job.options.redundancy.scheme = scheme;
    enter(compose("/case-{}", to_string(scheme)));
    job.disk.remove_all("/nodes");
    job.disk.make_directories("/nodes", 0755);
    local_only();
    commit_steps(job, {{"a", 1}});
    move("/nodes/node0", "/nodes/other");
    move("/nodes/node1", "/nodes/node0");
    move("/nodes/other", "/nodes/node1");
    expect_step(1, {{"b", 2}});
    expect_step(2);
  }
}

/// One node has its own, the other a copy of the first's: what it should have is rebuilt, or missing, never made up.
TEST_F(CopiedStores, OfOneNodeInThePlaceOfAnothersStandInForNothing) {
  local_only();
  for (const auto scheme : {Scheme::partner, Scheme::single}) {
    SCOPED_TRACE(to_string(scheme));
    job.options.redundancy.scheme = scheme;
    job.options.start = StartMode::fresh;
    commit_steps(job, {{"a", 1}});
    job.options.start = StartMode::continue_;
    const std::string lost = store("node1");
    job.disk.remove_all(lost);
    copy(store("node0"), lost);
    if (scheme == Scheme::single) {
      const auto failure = expect_refused(ErrorCode::unrecoverable);
      EXPECT_TRUE(says(failure.message, {"the container of rank 2"})) << failure.message;
      continue;
    }
    expect_step(1, {{"b", 2}});
    expect_step(2);
    job.disk.remove_all("/nodes");
    job.disk.make_directories("/nodes", 0755);
  }
}

/// An older copy of both nodes' stores, put back on one of them.
TEST_F(CopiedStores, OfAnotherTimeOnOneNodeAreNotMixedWithTheOthers) {
  local_only();
  job.options.redundancy.scheme = Scheme::single;
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  expect_step(1, {{"b", 2}});
  job.disk.restore(before, store("node1"));
  expect_step(1, {{"c", 3}});
  expect_step(3);
}

/// Two jobs on the same nodes, and the first's stores in the place of the second's.
TEST_F(CopiedStores, OfAnotherJobAreNotTakenUnderThisOnesName) {
  const auto job_of = [&](const std::string& directory, int step) {
    enter(directory);
    job.options.persistent.every = 1;
    commit_steps(job, {{"p", step}});
    local_only();
    reopen(job, latest, Newer::keep, {{"l", step + 1}});
  };
  job_of("/a", 10);
  const std::vector<std::string> of_a{store("node0"), store("node1")};
  const auto with_a = job.disk.snapshot();
  for (const std::string& one : of_a) job.disk.remove_all(one);
  job_of("/b", 20);
  const std::vector<std::string> of_b{store("node0"), store("node1")};
  for (const bool has_record : {true, false}) {
    SCOPED_TRACE(has_record);
    for (std::size_t node = 0; node < 2; ++node) {
      job.disk.restore(with_a, of_a[node]);
      job.disk.remove_all(of_b[node]);
      copy(of_a[node], of_b[node]);
      if (!has_record) job.disk.remove_all(of_b[node] + "/run");
    }
    enter("/b");
    expect_step(20, {{"m", 30}, {"n", 31}});
    expect_step(31);
    for (const auto& [path, entry] : with_a) {
      if (!has_record || !path.starts_with(of_a[0] + "/")) continue;
      EXPECT_EQ(job.disk.snapshot().at(of_b[0] + path.substr(of_a[0].size())).bytes, entry.bytes) << path;
    }
    enter("/a");
    expect_step(11);
  }
}

}  // namespace
}  // namespace kedge::faults::copied_stores_test
