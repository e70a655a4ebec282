// Outputs: flushed at once, kept in the stores until they are, rebuilt where a node is lost, counted in no keep, opened
// by no restart, and known after they left the stores.
#include <gtest/gtest.h>

#include "base/attempt.hpp"
#include "harness/outputs_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::outputs_test {
namespace {

class Outputs : public OutputsFixture {};

TEST_F(Outputs, NoRestartTakesOne) {
  PersistentJob job(3);
  make(job, {{"a", 1}, {"p1", 2}, {"b", 3}, {"p2", 4}});
  EXPECT_EQ(reopen(job).tag, "b");
  EXPECT_EQ(reopen(job, Before{"p2"}).tag, "b");
  EXPECT_EQ(reopen(job, Before{"b"}).tag, "a");
  EXPECT_EQ(reopen(job, Source{"/prefix", "test", "latest"}).tag, "b");
  // From the prefix alone as well.
  lose_stores(job, {0, 1, 2});
  EXPECT_EQ(reopen(job).tag, "b");
}

TEST_F(Outputs, IsReadByItsTag) {
  PersistentJob job(2);
  make(job, {{"a", 1}, {"p1", 7}});
  for (const bool from_prefix : {false, true}) {
    if (from_prefix) lose_stores(job, {0, 1});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      EXPECT_TRUE(engine.info().is_output);
      std::vector<double> plot(100 + static_cast<std::size_t>(scope.rank));
      EXPECT_TRUE(engine.load("plot", mutable_region(std::span(plot))));
      engine.close();
      EXPECT_EQ(plot, std::vector<double>(plot.size(), 7));
    }));
  }
  EXPECT_EQ(reopen(job).tag, "a");
}

/// Not even where checkpoints are rarely flushed, or never; and it takes no turn of theirs.
TEST_F(Outputs, IsFlushedAtOnce) {
  for (const std::uint64_t every : {0U, 2U}) {
    PersistentJob job(2);
    job.options.persistent.every = every;
    make(job, {{"a", 1}, {"p1", 2}, {"p2", 3}});
    EXPECT_EQ(tags(job), (std::vector<Tag>{"p2", "p1"}));
    make(job, {{"b", 4}, {"p3", 5}, {"c", 6}});
    // After an open of one that is not persistent, the next is due.
    EXPECT_EQ(tags(job), every == 0 ? (std::vector<Tag>{"p3", "p2", "p1"}) : (std::vector<Tag>{"p3", "b", "p2", "p1"}));
  }
}

TEST_F(Outputs, CountsInNoKeep) {
  PersistentJob job(2);
  job.options.persistent.keep = 1;
  job.options.store.keep = 1;
  make(job, {{"a", 1}, {"p1", 2}, {"p2", 3}, {"b", 4}, {"p3", 5}, {"p4", 6}});
  EXPECT_EQ(tags(job), (std::vector<Tag>{"p4", "p3", "b", "p2", "p1"}));
  EXPECT_EQ(reopen(job).tag, "b");
  // For people, the newest checkpoint.
  EXPECT_EQ("/prefix/" + text_of(job, "/prefix/latest"), directory_of(job, "b") + "\n");
}

/// It stays in the stores until it is on the prefix, whatever is committed meanwhile.
TEST_F(Outputs, OneThatCannotBeFlushedStaysUntilItCan) {
  PersistentJob job(3);
  job.options.store.keep = 1;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
    write_output(engine, scope.rank, "p1", 2);
    write_output(engine, scope.rank, "p2", 3);
    commit_step(engine, scope.rank, "b", 4);
    EXPECT_EQ(engine.level("p1"), Level::protected_);
    EXPECT_EQ(engine.level("p2"), Level::protected_);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", {}); });
    commit_step(engine, scope.rank, "c", 5);
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"c", "p2", "p1", "a"}));
}

/// A checkpoint that comes next brings the output along, and is itself flushed only when its turn comes.
TEST_F(Outputs, OneThatIsOwedMakesNoCheckpointDue) {
  PersistentJob job(2);
  job.options.persistent.every = 5;
  job.options.persistent.retries = 0;
  job.options.pipeline.mode = PipelineMode::background;
  job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) { environment.waits_for_worker = true; };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
    write_output(engine, scope.rank, "p1", 2);
    write_output(engine, scope.rank, "p2", 3);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", {}); });
    for (int step = 4; step < 7; ++step) commit_step(engine, scope.rank, compose("s{}", step), step);
    EXPECT_EQ(engine.level("s6"), Level::protected_);
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"p2", "p1"}));
}

/// Also by the next start, which may make none itself.
TEST_F(Outputs, OneThatAnEarlierStartLeftInTheStoresIsFlushedByTheNext) {
  for (const bool finalize : {false, true}) {
    PersistentJob job(3);
    job.disk.set_volume("/prefix", {});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 2);
    }));
    job.disk.set_volume("/prefix", {});
    make(job, finalize ? Steps{} : Steps{{"b", 3}}, finalize);
    EXPECT_EQ(tags(job), finalize ? (std::vector<Tag>{"p1", "a"}) : (std::vector<Tag>{"b", "p1", "a"}));
  }
}

TEST_F(Outputs, NoOptionRemovesOneThatIsInTheStoresOnly) {
  for (const OnExit on_exit : {OnExit::remove, OnExit::remove_if_persistent}) {
    PersistentJob job(2);
    job.options.store.on_exit = on_exit;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 2);
      engine.finalize();
    }));
    EXPECT_TRUE(job.logged("of the outputs could not be flushed")) << "on_exit " << static_cast<int>(on_exit);
    job.disk.set_volume("/prefix", {});
    job.options.store.on_exit = OnExit::keep;
    make(job, {}, true);
    EXPECT_EQ(tags(job).front(), "p1");
  }
}

/// A job that only puts out has nothing to restart from, and begins from zero each time.
TEST_F(Outputs, AJobWithoutCheckpointsBeginsFromZero) {
  PersistentJob job(2);
  make(job, {{"p1", 1}});
  for (const bool lost : {false, true}) {
    if (lost) lose_stores(job, {0, 1});
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.tag, std::nullopt);
  }
  make(job, {{"p2", 2}});
  EXPECT_EQ(tags(job), (std::vector<Tag>{"p2", "p1"}));
}

/// As of a checkpoint: a lost node costs none.
TEST_F(Outputs, IsProtectedUntilItIsFlushed) {
  PersistentJob job(3);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
    write_output(engine, scope.rank, "p1", 7);
  }));
  job.disk.set_volume("/prefix", {});
  lose_stores(job, {1});
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Tag("p1")), "p1");
    engine.close();
    engine.wait("p1", Level::persistent);
  }));
  EXPECT_EQ(tags(job).front(), "p1");
}

/// It leaves the stores as soon as it is on the prefix, and who asks for it then learns that.
TEST_F(Outputs, OneThatIsFlushedIsStillKnown) {
  for (const bool finds_room : {true, false}) {
    PersistentJob job(2);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (!finds_room) once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 1);
      if (!finds_room) once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", {}); });
      commit_step(engine, scope.rank, "a", 2);
      engine.wait("p1", Level::persistent);
      engine.wait("p1", Level::local);
      EXPECT_EQ(engine.level("p1"), Level::persistent);
      int calls = 0;
      engine.on_complete("p1", Level::persistent, [&](const std::optional<Failure>& failure) {
        EXPECT_FALSE(failure) << to_string(failure.value_or(Failure{}));
        ++calls;
      });
      commit_step(engine, scope.rank, "p1", 3);  // the tag's newest is another now
      EXPECT_EQ(calls, 1);
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      EXPECT_FALSE(engine.info().is_output);
      engine.close();
    }));
  }
}

/// It is no checkpoint that a start has returned to.
TEST_F(Outputs, OpeningOneLeavesAllElseAsItWas) {
  PersistentJob job(2);
  make(job, {{"p1", 1}});
  for (int start = 0; start < 2; ++start) {
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), std::nullopt);
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      engine.close();
      EXPECT_EQ(engine.open(), std::nullopt);
      if (start == 0) return;
      commit_step(engine, scope.rank, "a", 2);
      EXPECT_EQ(engine.open(), "a");
      EXPECT_TRUE(engine.info().parent_id.is_none());
      engine.close();
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      engine.close();
      commit_step(engine, scope.rank, "b", 3);
      EXPECT_EQ(engine.open(), "b");
      EXPECT_FALSE(engine.info().parent_id.is_none());
      engine.close();
    }));
  }
}

/// Whoever starts next makes it whole again, whether it asks for it or not.
TEST_F(Outputs, OneThatANodeTookAlongIsRebuiltAndFlushedByTheNextStart) {
  for (const bool has_checkpoint : {true, false}) {
    PersistentJob job(3);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (has_checkpoint) commit_step(engine, scope.rank, "a", 1);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 7);
      write_output(engine, scope.rank, "p2", 8);
      if (has_checkpoint) commit_step(engine, scope.rank, "b", 2);
    }));
    job.disk.set_volume("/prefix", {});
    lose_stores(job, {1});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const auto opened = engine.open();
      EXPECT_EQ(opened.has_value(), has_checkpoint);
      if (opened) {
        EXPECT_EQ(engine.info().tag, "b");
        engine.close();
      }
      engine.finalize();
    }));
    EXPECT_EQ(tags(job), has_checkpoint ? (std::vector<Tag>{"b", "p2", "p1", "a"}) : (std::vector<Tag>{"p2", "p1"}));
    lose_stores(job, {0, 1, 2});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      std::vector<double> plot(100 + static_cast<std::size_t>(scope.rank));
      EXPECT_TRUE(engine.load("plot", mutable_region(std::span(plot))));
      engine.close();
      EXPECT_EQ(plot, std::vector<double>(plot.size(), 7));
    }));
  }
}

TEST_F(Outputs, RanksThatDisagreeWhetherItIsOneAreTold) {
  PersistentJob job(2);
  const auto failure = expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (scope.rank == 0) engine.create_output("x");
    else engine.create("x");
  }),
                                         ErrorCode::bad_state);
  EXPECT_TRUE(says(failure.message, {"create"})) << failure.message;
}

/// Neither kind changes what the other is expected to look like.
TEST_F(Outputs, ChangesNothingOfWhenACheckpointIsDue) {
  PersistentJob job(2);
  job.options.schedule.every = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<int> due;
    for (int step = 1; step <= 9; ++step) {
      if (engine.need_checkpoint()) {
        due.push_back(step);
        commit_step(engine, scope.rank, compose("s{}", step), step);
      }
      write_output(engine, scope.rank, compose("p{}", step), step);
    }
    EXPECT_EQ(due, (std::vector<int>{3, 6, 9}));
  }));
}

}  // namespace
}  // namespace kedge::faults::outputs_test
