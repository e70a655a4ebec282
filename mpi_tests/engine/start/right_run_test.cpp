// Whose checkpoints a start continues from: its own by name, wherever the prefix was moved, linked, copied or set back
// to, and never another job's; stores that the prefix does not know, damaged records, start = fresh.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"
#include "harness/engine_checks.hpp"
#include "harness/named_communicator.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::faults::right_run_test {
namespace {

void name_communicator(SimulatedJob& job, const std::string& name) {
  job.in_front = [name](int /*rank*/, std::unique_ptr<Communicator> own) {
    return std::make_unique<NamedCommunicator>(std::move(own), name);
  };
}

/// One job of several cases: each has a directory with a prefix in it; all of them share the nodes.
TEST_F(RightRun, TwoDirectoriesWithOneRunNameOnOneNodeDoNotMeet) {
  for (const std::string name : {"", "sweep"}) {
    SCOPED_TRACE(name);
    job.options.run = name;
    for (const std::string one : {"/a", "/b"}) {
      enter(one + name);
      const Opened first = reopen(job, latest, Newer::keep, {{"step", one == "/a" ? 1 : 2}});
      EXPECT_EQ(first.tag, std::nullopt) << one;
      EXPECT_FALSE(first.failure) << one;
    }
    enter("/a" + name);
    EXPECT_EQ(reopen(job).step, 1);
    enter("/b" + name);
    EXPECT_EQ(reopen(job).step, 2);
  }
}

TEST_F(RightRun, ARemovedCaseIsNotResumedFromMemory) {
  for (const bool persistent : {true, false}) {
    SimulatedJob one(4);
    one.options.persistent.every = persistent ? 1 : 0;
    commit_steps(one, {{"a", 1}});
    one.disk.remove_all("/prefix");
    one.disk.make_directories("/prefix", 0755);
    for (int start = 0; start < 2; ++start) {
      const auto failure = reopen(one).failure.value_or(Failure{});
      EXPECT_EQ(failure.code, ErrorCode::mismatch);
      EXPECT_TRUE(says(failure.message, {"'test'", "/prefix", "has no record of run", "KEDGE_START=adopt",
                                         "KEDGE_START=fresh", "kedge drop"}))
          << failure.message;
      EXPECT_TRUE(failure.path.starts_with("/nodes/node0/kedge-1000-test-")) << failure.path;
    }
    const auto before = one.disk.snapshot();
    one.options.start = StartMode::adopt;
    EXPECT_EQ(reopen(one).step, 1);
    one.options.start = StartMode::continue_;
    EXPECT_EQ(reopen(one).step, 1);
    one.disk.restore(before);
    one.options.start = StartMode::fresh;
    const Opened fresh = reopen(one, latest, Newer::keep, {{"b", 5}});
    EXPECT_FALSE(fresh.failure);
    EXPECT_EQ(fresh.tag, std::nullopt);
    one.options.start = StartMode::continue_;
    EXPECT_EQ(reopen(one).step, 5);
  }
}

TEST_F(RightRun, AStoreOfOneNodeAloneIsEnoughToStopAStartThatDoesNotKnowIt) {
  local_only();
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/nodes/node0");
  lose_prefix();
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.path, {"/nodes/node1/"}));
  EXPECT_EQ(failure.rank, 2);
}

TEST_F(RightRun, StoresOfSeveralUnknownRunsAreNotMixed) {
  local_only();
  commit_steps(job, {{"a", 1}});
  const auto first = job.disk.snapshot();
  lose_prefix();
  job.disk.remove_all("/nodes");
  job.disk.make_directories("/nodes", 0755);
  commit_steps(job, {{"b", 2}});
  job.disk.remove_all("/nodes/node0");
  for (const auto& [path, entry] : first) {
    if (!path.starts_with("/nodes/node0")) continue;
    if (entry.status.kind == fs::FileStatus::Kind::directory) job.disk.make_directories(path, 0700);
    else job.disk.write_all(path, entry.bytes);
  }
  lose_prefix();
  job.options.start = StartMode::adopt;
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"several runs 'main'", "kedge drop"})) << failure.message;
}

TEST_F(RightRun, AMovedCaseFindsItsPersistentAndItsLocalCheckpoints) {
  commit_steps(job, {{"a", 1}});
  local_only();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  std::string from = "/case";
  for (const std::string to : {"/moved once", "/moved/twice", "/case"}) {
    if (to == "/moved/twice") job.disk.make_directories("/moved", 0755);
    move(from, to);
    enter(to);
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 2) << to;
    EXPECT_TRUE(job.logged("moved here from " + from + "/checkpoints")) << to;
    EXPECT_EQ(reopen(job).step, 2) << to;
    EXPECT_EQ(stores(), 1U) << to;
    from = to;
  }
}

TEST_F(RightRun, AMoveWhoseFirstStartFailsIsStillFollowed) {
  local_only();
  commit_steps(job, {{"a", 1}});
  move("/case", "/moved");
  enter("/moved");
  job.options.store.lock_timeout_s = 1;
  job.start([&](RankScope& scope) {
    if (scope.rank == 3) job.disk.stop_world_after(3, 1, 7);
    try {
      const Engine engine = scope.make_engine();
    } catch (const Error&) {
    }
  });
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(RightRun, ACopiedCaseGoesOnFromItsPersistentCheckpointsOnACourseOfItsOwn) {
  commit_steps(job, {{"a", 1}});
  local_only();
  reopen(job, latest, Newer::keep, {{"b", 2}});  // in the stores of the original alone
  copy("/case", "/copy");
  enter("/copy");
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 30}});
  EXPECT_EQ(opened.step, 1);
  EXPECT_TRUE(job.logged("a copy of /case/checkpoints"));
  EXPECT_EQ(stores(), 2U);
  EXPECT_EQ(reopen(job).step, 30);
  enter("/case");
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"d", 4}}).step, 2);
  // Also when the original is gone, and when the copy is moved.
  job.disk.remove_all("/case");
  move("/copy", "/elsewhere");
  enter("/elsewhere");
  EXPECT_EQ(reopen(job).step, 30);
}

TEST_F(RightRun, APrefixReachedByASymbolicLinkIsTheSame) {
  commit_steps(job, {{"a", 1}});
  job.disk.plant_link("/link", "/case");
  job.options.persistent.path = "/link/checkpoints";
  EXPECT_EQ(reopen(job).step, 1);
  EXPECT_EQ(stores(), 1U);
}

TEST_F(RightRun, APrefixThatWasSetBackGoesOnWithWhatIsNewestAnywhere) {
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.disk.restore(before, "/case");
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(RightRun, StoresThatWereSetBackOrLostAreNoReasonToStop) {
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.disk.restore(before, "/nodes");
  EXPECT_EQ(reopen(job).step, 2);
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(RightRun, ACommunicatorThatLostItsNameGoesOnWithTheOnlyRun) {
  name_communicator(job, "ocean");
  commit_steps(job, {{"a", 1}});
  job.in_front = nullptr;
  EXPECT_EQ(reopen(job).step, 1);
  EXPECT_TRUE(job.logged("run 'ocean'"));
  // Under another name it could be another engine of the same program: that does not begin from zero in silence.
  name_communicator(job, "atmosphere");
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"'ocean'", "give the communicator its name", "KEDGE_RUN) to 'atmosphere'"}))
      << failure.message;
  job.options.run = "atmosphere";
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, std::nullopt);
  // With two runs there, a job without a name has to say which it is.
  job.options.run = "";
  EXPECT_EQ(reopen(job).step, 2);
  job.in_front = nullptr;
  const auto several = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(several.message, {"'atmosphere', 'ocean'", "KEDGE_RUN"})) << several.message;
}

TEST_F(RightRun, ANamedRunWhoseCommunicatorGetsANameDoesNotBeginFromZeroInSilence) {
  job.options.run = "exp";
  commit_steps(job, {{"a", 1}});
  name_communicator(job, "ocean");
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"run 'exp'", "'exp.ocean'", "give the communicator no name"})) << failure.message;
  job.options.run = "other";
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, std::nullopt);
  EXPECT_TRUE(job.logged("run 'other.ocean'"));
  EXPECT_EQ(reopen(job).step, 2);
  name_communicator(job, "ice");
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).tag, std::nullopt) << "another part of the job";
  name_communicator(job, "ocean");
  EXPECT_EQ(reopen(job).step, 2);
  job.in_front = nullptr;
  const auto nameless = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(nameless.message, {"run 'other.", "would run as 'other'", "give the communicator that name"}))
      << nameless.message;
}

TEST_F(RightRun, ANamedRunWithoutACheckpointIsNotTakenForTheOther) {
  name_communicator(job, "atmosphere");
  reopen(job);  // started once, and committed nothing
  name_communicator(job, "ocean");
  job.options.run = "ocean";
  commit_steps(job, {{"a", 1}});
  job.options.run = "";
  name_communicator(job, "atmosphere");
  const Opened opened = reopen(job);
  EXPECT_FALSE(opened.failure);
  EXPECT_EQ(opened.tag, std::nullopt);
}

TEST_F(RightRun, WithoutAnyRecordsTheManifestsSayWhichRunsThereAre) {
  name_communicator(job, "ocean");
  commit_steps(job, {{"a", 1}});
  job.in_front = nullptr;
  job.disk.remove_all("/case/checkpoints/.kedge");
  EXPECT_EQ(reopen(job).step, 1);
  EXPECT_TRUE(job.logged("it is rebuilt from its manifests"));
}

/// What may be left of a run's record when a byte of it flips.
TEST_F(RightRun, ADamagedRecordIsMadeAgainFromWhateverKnowsIt) {
  commit_steps(job, {{"a", 1}});
  const std::string records = "/case/checkpoints/.kedge/main";
  const auto whole = job.disk.snapshot();
  const std::string text = "{\"run_id\": \"12\"}";
  const auto harm = [&](const std::vector<std::string>& lost) {
    job.disk.restore(whole);
    job.disk.write_all(records + "/run.json", std::as_bytes(std::span(text)));
    for (const std::string& path : lost) job.disk.remove_all(path);
  };
  std::string tag_directory;
  for (const auto& [path, entry] : whole) {
    if (path.starts_with("/case/checkpoints/a.") && tag_directory.empty())
      tag_directory = path.substr(0, path.find('/', 19));
  }
  const std::string begun = records + "/begun-1";
  for (const std::vector<std::string>& lost :
       {std::vector<std::string>{}, {begun}, {begun, tag_directory}, {begun, "/nodes"}}) {
    harm(lost);
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.step, 1) << lost.size();
    EXPECT_TRUE(job.logged("rebuilding it from")) << lost.size();
    EXPECT_EQ(reopen(job).step, 1);
  }
  harm({begun, tag_directory, "/nodes"});
  const auto failure = expect_refused(ErrorCode::corrupt);
  EXPECT_TRUE(says(failure.message, {"'main'", "restore the record", "KEDGE_START=fresh"})) << failure.message;
  EXPECT_EQ(failure.path, records + "/run.json");
}

TEST_F(RightRun, FreshBeginsALineageBesideTheOldOneOnce) {
  commit_steps(job, {{"a", 1}});
  job.options.start = StartMode::fresh;
  const Opened fresh = reopen(job, latest, Newer::keep, {{"b", 2}});
  EXPECT_FALSE(fresh.failure);
  EXPECT_EQ(fresh.tag, std::nullopt);
  EXPECT_TRUE(job.logged("starts over, ignoring earlier checkpoints (KEDGE_START=fresh; unset it for the next start)"));
  job.options.start = StartMode::continue_;
  EXPECT_EQ(reopen(job).step, 2);
  EXPECT_EQ(reopen(job, Tag{"a"}).tag, std::nullopt);
  // It is still there for who asks for it.
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Source{"/case/checkpoints", "", "a"}), "a");
    engine.close();
  }));
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).step, 2);
}

/// What was noted of the run before does not stand in for the new one's notes.
TEST_F(RightRun, WhatAFreshRunCommittedIsMissedWhenItIsLost) {
  commit_steps(job, {{"a", 1}});
  local_only();
  job.options.start = StartMode::fresh;
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.options.start = StartMode::continue_;
  job.disk.remove_all("/nodes");
  job.disk.make_directories("/nodes", 0755);
  (void)expect_refused(ErrorCode::unrecoverable);
}

/// Another start begins, and this one makes its first commit.
TEST_F(RightRun, AFirstCommitOfAStartThatWasOvertakenIsBusyOnAllRanks) {
  local_only();
  OnEachRank met(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (scope.rank == 0) {
      persist::RunStart later({job.disk.view(0), "/case/checkpoints", "main"});
      (void)later.take_incarnation();
      later.mark_begun({});
    }
    scope.communicator.barrier(Deadline::never());
    met.put(scope.rank, failure_of([&] { commit_step(engine, scope.rank, "a", 1); }));
  }));
  ASSERT_TRUE(met.same());
  EXPECT_EQ(met.same()->code, ErrorCode::busy) << to_string(*met.same());
}

TEST_F(RightRun, AFreshStartThatDiesAnywhereLeavesOneOfTheTwoWhole) {
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  job.options.start = StartMode::fresh;
  reopen(job);
  const auto operations = job.operations[0];
  for (std::uint64_t n = 1; n <= operations; ++n) {
    job.disk.restore(before);
    job.options.start = StartMode::fresh;
    job.disk.stop_world_after(0, n, n);
    job.start([&](RankScope& scope) { const Engine engine = scope.make_engine(); });
    job.options.start = StartMode::continue_;
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
    EXPECT_FALSE(opened.failure) << n << ": " << to_string(opened.failure.value_or(Failure{}));
    EXPECT_TRUE(opened.step == 1 || !opened.tag) << n;
    EXPECT_EQ(reopen(job).step, 3) << n;
  }
}

TEST_F(RightRun, TheFirstLineOfAStartSaysRunPrefixStoreAndWhatWasFound) {
  const std::string first = first_line();
  EXPECT_TRUE(says(first, {"run 'main', incarnation 1, on /case/checkpoints", "store /nodes/node0/kedge-1000-main-",
                           "other node", "no checkpoints yet, starts from scratch"}))
      << first;
  commit_steps(job, {{"a", 1}});
  const std::string later = first_line();
  EXPECT_TRUE(says(later, {"run 'main', incarnation 3, on /case/checkpoints", "has checkpoints"})) << later;
}

TEST_F(RightRun, AnEngineThatReplacesOneInTheSameVariableIsToldAtOnceWhatToDo) {
  job.options.open.chained = true;  // the last one goes on from what was finalized
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    try {
      engine = scope.make_engine();
      ADD_FAILURE() << "two engines at once";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::busy);
      EXPECT_TRUE(says(error.what(), {"still has an engine for this run", "finalize it before making another"}))
          << error.what();
    }
    commit_step(engine, scope.rank, "b", 2);
    engine.finalize();
    engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
  }));
}

TEST(ChooseRun, IsByWhatHasCheckpoints) {
  using persist::choose_run;
  using Runs = std::vector<std::string>;
  EXPECT_EQ(choose_run("", Runs{}, false), "main");
  EXPECT_EQ(choose_run("MPI_COMM_WORLD", Runs{}, false), "main");
  EXPECT_EQ(choose_run("my ocean", Runs{}, false), "my-ocean");
  EXPECT_EQ(choose_run("", Runs{"heat"}, true), "heat");
  EXPECT_EQ(choose_run("", Runs{"heat", "main"}, true), "main");
  EXPECT_EQ(choose_run("ocean", Runs{"heat", "ocean"}, true), "ocean");
  EXPECT_EQ(choose_run("ocean", Runs{"heat"}, true), "ocean");
  EXPECT_THROW((void)choose_run("ocean", Runs{"heat"}, false), Error);
  EXPECT_THROW((void)choose_run("", Runs{"heat", "ocean"}, true), Error);
}

}  // namespace
}  // namespace kedge::faults::right_run_test
