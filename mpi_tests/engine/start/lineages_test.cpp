// What the stores know and the prefix does not: a run begun afresh, a prefix that a link or a copy replaced, records
// set back; what start = fresh leaves is named, and a store with outputs alone stops a start too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"
#include "harness/outputs_fixture.hpp"

namespace kedge::faults::lineages_test {
namespace {

class Lineages : public RightRun {
 protected:
  /// An older run with a persistent commit, and one that was begun afresh, in the stores alone.
  void begin_afresh() {
    commit_steps(job, {{"old", 1}});
    local_only();
    job.options.start = StartMode::fresh;
    commit_steps(job, {{"new", 20}});
    job.options.start = StartMode::continue_;
  }
  void lose_records() { job.disk.remove_all("/case/checkpoints/.kedge"); }
  Failure expect_told() {
    const Failure failure = expect_refused(ErrorCode::mismatch);
    EXPECT_TRUE(says(failure.message, {"no record of", "KEDGE_START=adopt", "KEDGE_START=fresh", "kedge drop"}))
        << failure.message;
    EXPECT_TRUE(failure.path.starts_with("/nodes/")) << failure.path;
    return failure;
  }
  void expect_at(int step) {
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.step, step);
  }
  void expect_adopted(int step) {
    job.options.start = StartMode::adopt;
    expect_at(step);
    job.options.start = StartMode::continue_;
    expect_at(step);
  }
  /// Of the engine's prefix: a link in a directory of its own, which leads to a directory.
  void link_to(const std::string& target) {
    job.disk.make_directories(target, 0755);
    job.disk.remove_all("/linked/checkpoints");
    job.disk.make_directories("/linked", 0755);
    job.disk.plant_link("/linked/checkpoints", target);
    job.options.persistent.path = "/linked/checkpoints";
  }
};

TEST_F(Lineages, WhatWasBegunAfreshGoesOnWhileTheOlderStoreIsThere) {
  begin_afresh();
  EXPECT_EQ(stores(), 2U);
  expect_at(20);
  expect_at(20);
}

/// The prefix has a checkpoint of the run that was given up, and nothing of the newer one.
TEST_F(Lineages, ARunBegunAfreshThatLostItsRecordsIsNotPassedOver) {
  begin_afresh();
  lose_records();
  expect_told();
  expect_told();  // at every start, not once
}

TEST_F(Lineages, ItGoesOnFromItsStoresWhereTheyAreAdopted) {
  begin_afresh();
  remove_everywhere(container_of(job.disk, 0, "old"));  // the older run's are gone
  lose_records();
  expect_told();
  expect_adopted(20);
}

TEST_F(Lineages, StoresOfBothAreMoreThanAdoptionCanTell) {
  begin_afresh();
  lose_records();
  job.options.start = StartMode::adopt;
  const Failure failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"several runs", "kedge drop", "KEDGE_START=fresh"})) << failure.message;
}

/// Generations begin anew with each run: the older one may have the higher ones.
TEST_F(Lineages, TheRunThatWasGivenUpDoesNotComeBackFromItsManifests) {
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  job.advance_clock(std::chrono::seconds(1));
  job.options.start = StartMode::fresh;
  commit_steps(job, {{"new", 20}});
  job.options.start = StartMode::continue_;
  job.disk.remove_all("/nodes");
  job.disk.make_directories("/nodes", 0755);
  lose_records();
  expect_at(20);
}

TEST_F(Lineages, RecordsThatWereSetBackDoNotPassOverTheNewerRun) {
  commit_steps(job, {{"old", 1}});
  const auto records = job.disk.snapshot();
  local_only();
  job.options.start = StartMode::fresh;
  commit_steps(job, {{"new", 20}});
  job.options.start = StartMode::continue_;
  lose_records();
  for (const auto& [path, entry] : records) {
    if (!path.starts_with("/case/checkpoints/.kedge")) continue;
    if (entry.status.kind == fs::FileStatus::Kind::directory) job.disk.make_directories(path, entry.status.mode);
    else job.disk.write_all(path, entry.bytes);
  }
  expect_told();
}

/// Twice afresh: both that were given up are known to be.
TEST_F(Lineages, EachStoreThatWasGivenUpIsLeftAlone) {
  begin_afresh();
  job.options.start = StartMode::fresh;
  commit_steps(job, {{"newer", 40}});
  job.options.start = StartMode::continue_;
  EXPECT_EQ(stores(), 3U);
  expect_at(40);
  // Also the store of a run that the prefix had lost.
  lose_records();
  job.options.start = StartMode::fresh;
  commit_steps(job, {{"newest", 60}});
  job.options.start = StartMode::continue_;
  EXPECT_EQ(stores(), 4U);
  expect_at(60);
}

/// A node that has the other run's store is not rank 0's.
TEST_F(Lineages, OneNodesStoreIsEnoughToTellAllRanks) {
  begin_afresh();
  lose_records();
  job.disk.remove_all("/nodes/node0");
  expect_told();
}

TEST_F(Lineages, ALinkInPlaceOfThePrefixDoesNotBeginFromZero) {
  local_only();
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/case/checkpoints");
  job.disk.make_directories("/elsewhere", 0755);
  job.disk.plant_link("/case/checkpoints", "/elsewhere");
  const Failure failure = expect_told();
  EXPECT_TRUE(says(failure.message, {"/case/checkpoints points to /elsewhere"})) << failure.message;
  expect_adopted(1);
}

TEST_F(Lineages, ALinkThatLeadsElsewhereDoesNotBeginFromZero) {
  local_only();
  for (const bool target_is_gone : {true, false}) {
    link_to(compose("/one{}", target_is_gone));
    commit_steps(job, {{"a", 1}});
    if (target_is_gone) job.disk.remove_all("/onetrue");
    link_to(compose("/two{}", target_is_gone));
    const Failure failure = expect_refused(ErrorCode::mismatch);
    EXPECT_TRUE(says(failure.message, {"point it there again", "KEDGE_START=fresh", "kedge drop"}));
    // What still has its own prefix is not for another one to take.
    EXPECT_EQ(says(failure.message, {"KEDGE_START=adopt"}), target_is_gone) << failure.message;
    job.options.start = StartMode::adopt;
    if (target_is_gone) EXPECT_EQ(reopen(job).step, 1);
    else expect_refused(ErrorCode::mismatch);
    job.options.start = StartMode::continue_;
    job.disk.remove_all("/nodes");
    job.disk.make_directories("/nodes", 0755);
  }
}

/// Whoever lets a link lead to one and the other of two runs has both.
TEST_F(Lineages, ALinkThatGoesBackAndForthLeadsToEachRunsOwn) {
  local_only();
  link_to("/one");
  commit_steps(job, {{"a", 1}});
  link_to("/two");
  expect_refused(ErrorCode::mismatch);
  job.options.start = StartMode::fresh;
  commit_steps(job, {{"b", 20}});
  job.options.start = StartMode::continue_;
  for (int round = 0; round < 2; ++round) {
    link_to("/one");
    expect_at(1);
    link_to("/two");
    expect_at(20);
  }
}

/// The store knows each path by which the prefix was given.
TEST_F(Lineages, ALinkIsKnownAlsoWhereALaterStartWentPastIt) {
  local_only();
  link_to("/one");
  commit_steps(job, {{"a", 1}});
  job.options.persistent.path = "/one";
  expect_at(1);
  link_to("/two");
  expect_refused(ErrorCode::mismatch);
}

TEST_F(Lineages, ADirectoryInPlaceOfTheLinkDoesNotBeginFromZero) {
  local_only();
  link_to("/one");
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/linked/checkpoints");
  job.disk.make_directories("/linked/checkpoints", 0755);
  expect_refused(ErrorCode::mismatch);
}

/// The store says that there is another run than the one that the prefix knows.
TEST_F(Lineages, ARunWithoutANameWhoseRecordsWereLostIsNotPassedOverForTheOther) {
  local_only();
  commit_steps(job, {{"mine", 1}});
  job.options.run = "other";
  commit_steps(job, {{"theirs", 20}});
  job.options.run = "";
  job.disk.remove_all("/case/checkpoints/.kedge/main");
  const Failure failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"'main'", "'other'", "KEDGE_RUN", "kedge drop"})) << failure.message;
  job.options.run = "other";
  expect_at(20);
  job.options.run = "";
  remove_everywhere(failure.path);
  expect_at(20);
}

/// What another spelling of the same path says is the same.
TEST_F(Lineages, DotsAndSlashesMakeNoOtherPath) {
  local_only();
  link_to("/one");
  commit_steps(job, {{"a", 1}});
  link_to("/two");
  job.options.persistent.path = "/linked/./checkpoints/";
  expect_refused(ErrorCode::mismatch);
}

/// With the prefix, what was known of it was removed: only the store itself can say what it has.
TEST_F(Lineages, WhatFreshLeavesBehindInAStoreOfARemovedPrefixIsNamed) {
  local_only();
  commit_steps(job, {{"a", 1}, {"b", 2}});
  lose_prefix();
  const auto lines = job.log().size();
  job.options.start = StartMode::fresh;
  EXPECT_EQ(reopen(job).tag, std::nullopt);
  job.options.start = StartMode::continue_;
  std::vector<std::string> told;
  const auto log = job.log();
  for (std::size_t i = lines; i < log.size(); ++i) {
    if (log[i].find("kedge drop") != std::string::npos) told.push_back(log[i]);
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(says(told[0], {"commits of an earlier run 'main' (the newest is b, generation", "/nodes/node",
                             "remove /case/checkpoints/.kedge/main", "KEDGE_START=adopt"}))
      << told[0];
  // As it says, to continue from it.
  job.disk.remove_all("/case/checkpoints/.kedge/main");
  expect_adopted(2);
}

/// What the prefix knows is named as before, once.
TEST_F(Lineages, WhatFreshLeavesBehindIsNamedOnce) {
  local_only();
  commit_steps(job, {{"a", 1}});
  job.options.start = StartMode::fresh;
  for (const std::size_t starts : {1U, 2U}) {
    EXPECT_EQ(reopen(job).tag, std::nullopt);
    const auto log = job.log();
    const auto told = std::ranges::count_if(
        log, [](const std::string& line) { return line.find("to free it: kedge drop") != std::string::npos; });
    EXPECT_EQ(static_cast<std::size_t>(told), starts);
    EXPECT_FALSE(job.logged("of an earlier run"));
  }
}

/// Outputs that are nowhere else are as good a reason as checkpoints.
TEST_F(Lineages, AStoreThatHasOutputsAloneStopsAStartOnAReplacedPrefix) {
  for (const bool is_replaced_by_link : {false, true}) {
    Volume full;
    full.write_errno = ENOSPC;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      once(engine, scope.rank, [&] { job.disk.set_volume("/case/checkpoints", full); });
      write_output(engine, scope.rank, "p1", 7);
    }));
    job.disk.set_volume("/case/checkpoints", {});
    job.disk.remove_all("/case/checkpoints");
    if (is_replaced_by_link) {
      job.disk.make_directories("/elsewhere", 0755);
      job.disk.plant_link("/case/checkpoints", "/elsewhere");
    }
    expect_told();
    job.options.start = StartMode::adopt;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), std::nullopt);
      engine.finalize();
    }));
    job.options.start = StartMode::continue_;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      engine.close();
    }));
    const std::string leads_to = is_replaced_by_link ? "/elsewhere" : "/case/checkpoints";
    EXPECT_EQ(persist::list_tags(*job.disk.view(0), leads_to).entries.size(), 1U);
    job.disk.remove_all("/case/checkpoints");
    job.disk.remove_all("/nodes");
    job.disk.make_directories("/nodes", 0755);
  }
}

/// A job without a name goes on with the only run that there is, but not in the place of its own.
TEST_F(Lineages, ARunWithoutANameThatLostItsRecordsIsNotTakenForTheOther) {
  for (const std::string run : {"", "other"}) {
    job.options.run = run;
    EXPECT_EQ(reopen(job, latest, Newer::keep, {{"step", run.empty() ? 1 : 2}}).tag, std::nullopt);
  }
  job.options.run = "";
  std::string own;
  for (const auto& [path, entry] : job.disk.snapshot()) {
    if (path.ends_with("/.kedge/main")) own = path;
  }
  ASSERT_FALSE(own.empty());
  job.disk.remove_all(own);
  EXPECT_EQ(reopen(job).step, 1);
}

}  // namespace
}  // namespace kedge::faults::lineages_test
