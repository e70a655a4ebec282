// What befalls the stores and the prefix together: moved, copied, lost, set back, given to another user.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"

namespace kedge::faults::stores_and_prefix_test {
namespace {

/// The stores lie in the case's directory, beside the prefix.
class StoresAndPrefix : public RightRun {
 protected:
  /// One persistent commit, and a later one in the stores alone.
  StoresAndPrefix() {
    go_to("/case");
    commit_steps(job, {{"a", 1}});
    local_only();
    reopen(job, latest, Newer::keep, {{"b", 2}});
  }
  void go_to(const std::string& directory) {
    enter(directory);
    job.options.store.path = directory + "/store/{node}";
  }
  /// The start there goes on from this step, with local commits.
  void expect_at(const std::string& directory, int step, const Steps& then = {}) {
    go_to(directory);
    const Opened opened = reopen(job, latest, Newer::keep, then);
    EXPECT_FALSE(opened.failure) << directory << ": " << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.step, step) << directory;
  }
  void expect_afresh(const std::string& directory) {
    go_to(directory);
    const auto lines = job.log().size();
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.tag, std::nullopt);
    EXPECT_TRUE(says(job.log().at(lines), {"incarnation 1", "starts from scratch"})) << job.log().at(lines);
  }
  /// Every file below the directory.
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> content(const std::string& directory) const {
    std::map<std::string, std::vector<std::byte>> files;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path.starts_with(directory + "/")) files.emplace(path, entry.bytes);
    }
    return files;
  }
};

TEST_F(StoresAndPrefix, MovedTogetherTheyGoOnFromTheNewest) {
  std::string from = "/case";
  for (const std::string to : {"/moved", "/moved again", "/case"}) {
    move(from, to);
    expect_at(to, 2);
    from = to;
  }
  move("/case", "/elsewhere");
  expect_afresh("/case");
  expect_at("/elsewhere", 2);
}

TEST_F(StoresAndPrefix, ACopyOfBothGoesOnFromWhatIsPersistentAndNeitherTouchesTheOther) {
  copy("/case", "/copy");
  const auto original = content("/case");
  expect_at("/copy", 1, {{"c", 30}, {"d", 40}});
  EXPECT_TRUE(job.logged("a copy of /case/checkpoints"));
  EXPECT_EQ(content("/case"), original);
  const auto copied = content("/copy");
  expect_at("/case", 2, {{"e", 3}, {"f", 4}});
  EXPECT_EQ(content("/copy"), copied);
  expect_at("/copy", 40);
  expect_at("/case", 4);
}

TEST_F(StoresAndPrefix, AnOriginalThatStartsFirstAgainLeavesItsCopyAlone) {
  copy("/case", "/copy");
  const auto copied = content("/copy");
  expect_at("/case", 2, {{"e", 3}});
  EXPECT_EQ(content("/copy"), copied);
  expect_at("/copy", 1, {{"c", 30}});
  expect_at("/case", 3);
  expect_at("/copy", 30);
}

/// As `mv` from one file system to another does it.
TEST_F(StoresAndPrefix, ACopyWhoseOriginalWasRemovedWasMoved) {
  copy("/case", "/copy");
  job.disk.remove_all("/case");
  expect_at("/copy", 2);
}

/// Nothing tells which is the original: each has what it had, in stores of its own.
TEST_F(StoresAndPrefix, OriginalAndCopyThatBothMovedGoOnApart) {
  copy("/case", "/copy");
  move("/case", "/moved");
  expect_at("/copy", 2, {{"c", 30}});
  expect_at("/moved", 2, {{"d", 40}});
  expect_at("/copy", 30);
  expect_at("/moved", 40);
}

TEST_F(StoresAndPrefix, BothLostTheRunBeginsAfresh) {
  job.disk.remove_all("/case");
  expect_afresh("/case");
}

TEST_F(StoresAndPrefix, BothLostWhereTheyLieApartTheRunBeginsAfreshToo) {
  job.options.store.path = "/nodes/{node}";
  enter("/apart");
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/apart");
  job.disk.remove_all("/nodes");
  job.disk.make_directories("/nodes", 0755);
  enter("/apart");
  EXPECT_EQ(reopen(job).tag, std::nullopt);
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).tag, std::nullopt);
  EXPECT_EQ(reopen(job).step, 3);
}

TEST_F(StoresAndPrefix, SetBackToAnyTwoTimesTheNewestThatExistsIsFound) {
  std::vector<FaultyDisk::Snapshot> times{{}, {}};  // no time 0, and 1 is what makes 2
  times.push_back(job.disk.snapshot());
  job.options.persistent.every = 1;
  reopen(job, latest, Newer::keep, {{"c", 3}});
  times.push_back(job.disk.snapshot());
  local_only();
  reopen(job, latest, Newer::keep, {{"d", 4}});
  times.push_back(job.disk.snapshot());
  for (int stores = 2; stores <= 4; ++stores) {
    for (int prefix = 2; prefix <= 4; ++prefix) {
      SCOPED_TRACE(compose("stores of time {}, prefix of time {}", stores, prefix));
      job.disk.restore(times[static_cast<std::size_t>(stores)], "/case/store");
      job.disk.restore(times[static_cast<std::size_t>(prefix)], "/case/checkpoints");
      const int persistent = prefix == 2 ? 1 : 3;
      job.options.persistent.every = 1;
      expect_at("/case", std::max(stores, persistent), {{"next", 50}});
      expect_at("/case", 50);
      job.disk.remove_all("/case/store");
      expect_at("/case", 50);
    }
  }
}

/// The stores have one course, the prefix another, and tag and generation are the same.
TEST(StoresAndPrefixOfTwoCourses, AreNeverMixed) {
  for (const auto scheme : {Scheme::single, Scheme::partner}) {
    TwoTimelines courses(4, [&](SimulatedJob& configured) {
      configured.options.persistent.every = 1;
      configured.options.redundancy.scheme = scheme;
    });
    SimulatedJob& job = courses.job;
    for (const std::string lost : {"", "/nodes/node0", "/nodes/node1", "/nodes"}) {
      SCOPED_TRACE(compose("{}, lost: {}", to_string(scheme), lost));
      job.disk.restore(courses.first, "/nodes");
      job.disk.restore(courses.second, "/prefix");
      if (!lost.empty()) job.disk.remove_all(lost);
      job.disk.make_directories("/nodes", 0755);
      const Opened opened = reopen(job, latest, Newer::keep, {{"after", 60}});
      EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
      EXPECT_TRUE(opened.step == 20 || opened.step == 30) << opened.step;
      EXPECT_EQ(reopen(job).step, 60);
    }
  }
}

/// As root leaves them who copies a case.
class OfAnotherUser : public StoresAndPrefix {
 protected:
  OfAnotherUser() {
    own("/case", 4242);
    before = content("/case");
  }
  void own(const std::string& directory, std::uint32_t owner) {
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path != directory && !path.starts_with(directory + "/")) continue;
      auto status = entry.status;
      status.owner = owner;
      status.group = owner;
      job.disk.plant(path, status);
    }
  }
  std::map<std::string, std::vector<std::byte>> before;
};

TEST_F(OfAnotherUser, BothAreRefusedInWordsAndLeftAlone) {
  const auto failure = expect_refused(ErrorCode::io);
  EXPECT_EQ(failure.path, "/case/checkpoints/.kedge/main");
  EXPECT_TRUE(says(failure.message, {"belongs to user 4242", "another run name"})) << failure.message;
  job.options.run = "mine";
  (void)expect_refused(ErrorCode::io);
  EXPECT_EQ(content("/case"), before);
  own("/case", 1000);
  job.options.run = "";
  expect_at("/case", 2);
}

/// A directory that several users share: each has runs of his own there.
TEST_F(OfAnotherUser, BothDoNotKeepThisUsersRunFromTheSharedDirectory) {
  for (const std::string shared :
       {"/case/checkpoints", "/case/checkpoints/.kedge", "/case/store/node0", "/case/store/node1"}) {
    auto status = job.disk.snapshot().at(shared).status;
    status.mode = 01777;
    job.disk.plant(shared, status);
  }
  job.options.run = "mine";
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"m", 7}}).tag, std::nullopt);
  EXPECT_EQ(reopen(job).step, 7);
  const auto now = content("/case");
  for (const auto& [path, bytes] : before) EXPECT_TRUE(now.contains(path) && now.at(path) == bytes) << path;
}

}  // namespace
}  // namespace kedge::faults::stores_and_prefix_test
