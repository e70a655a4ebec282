// Outputs that are not on the prefix yet: those of another number of ranks stay and are named, those of which too
// little is left are named as lost, going back in checkpoints costs none; a prefix that takes no flushes is reported
// once.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/attempt.hpp"
#include "harness/outputs_fixture.hpp"

namespace kedge::faults::owed_outputs_test {
namespace {

class UnflushedOutputs : public OutputsFixture {
 protected:
  /// Of four ranks on two nodes: one that could not be flushed, in stores without any checkpoint.
  static void leave_one_of_four_ranks(SimulatedJob& job) {
    job.ranks_per_node = 2;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 7);
    }));
    job.disk.set_volume("/prefix", {});
  }
  static std::ptrdiff_t times_logged(const SimulatedJob& job, std::string_view part) {
    const auto lines = job.log();
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.find(part) != line.npos; });
  }
  void expect_read(SimulatedJob& job, const Tag& tag, int step) {
    lose_stores(job, {0, 1});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(tag), tag);
      std::vector<double> plot(100 + static_cast<std::size_t>(scope.rank));
      EXPECT_TRUE(engine.load("plot", mutable_region(std::span(plot))));
      engine.close();
      EXPECT_EQ(plot, std::vector<double>(plot.size(), step));
    }));
  }
};

TEST_F(UnflushedOutputs, AStartOfAnotherSizeLeavesThemInTheirStoresAndSaysSoOnce) {
  for (const bool opens_first : {true, false}) {
    PersistentJob job(4);
    leave_one_of_four_ranks(job);
    job.ranks = 2;
    job.ranks_per_node = 1;
    job.options.store.keep = 1;
    for (int start = 0; start < 2; ++start) {
      expect_all_returned(job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        if (opens_first && engine.open()) engine.close();
        for (int step = 0; step < 3; ++step) commit_step(engine, scope.rank, compose("s{}-{}", start, step), step);
        write_output(engine, scope.rank, compose("q{}", start), 9);
        engine.finalize();
      }));
      EXPECT_EQ(times_logged(job, "the output p1 is not on the prefix: 4 ranks wrote it, and this job has 2."),
                start + 1);
    }
    EXPECT_TRUE(job.logged("kedge drain /prefix --run test"));
    EXPECT_TRUE(job.logged("1 of the outputs is only in the node-local stores (p1)"));
    job.ranks = 4;
    job.ranks_per_node = 2;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(Tag("p1")), "p1");
      engine.close();
      engine.finalize();
    }));
    EXPECT_TRUE(directory_of(job, "p1").starts_with("/prefix/"));
    expect_read(job, "p1", 7);
  }
}

/// Also where the newest checkpoint is of this start's size, and where a store is to be removed at the end.
TEST_F(UnflushedOutputs, OneOfAnotherSizeOutlivesTheRemovalOfTheStores) {
  PersistentJob job(4);
  leave_one_of_four_ranks(job);
  job.ranks = 2;
  job.ranks_per_node = 1;
  job.options.store.on_exit = OnExit::remove;
  make(job, {{"a", 1}}, true);
  EXPECT_TRUE(
      job.logged("store.on_exit = remove was not carried out: 1 of the outputs could not be flushed and is only "
                 "in the node-local stores (p1)"));
  job.options.store.on_exit = OnExit::keep;
  make(job, {{"b", 2}}, true);
  job.ranks = 4;
  job.ranks_per_node = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(Tag("p1")), "p1");
    engine.close();
    engine.finalize();
  }));
  expect_read(job, "p1", 7);
}

/// Also where it has nothing to open, and is killed before it ends.
TEST_F(UnflushedOutputs, AStartFromZeroFlushesThemBehindItsCheckpoints) {
  for (const bool opens_first : {true, false}) {
    PersistentJob job(4);
    leave_one_of_four_ranks(job);
    job.options.persistent.every = 5;
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = true;
    };
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (opens_first) {
        EXPECT_EQ(engine.open(), std::nullopt);
      }
      commit_step(engine, scope.rank, "a", 1);
      commit_step(engine, scope.rank, "b", 2);
    }));
    EXPECT_EQ(tags(job), std::vector<Tag>{"p1"});
  }
}

TEST_F(UnflushedOutputs, OneOfWhichTooLittleIsLeftIsToldByName) {
  PersistentJob job(2);
  job.options.redundancy.every = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
    write_output(engine, scope.rank, "p1", 7);
  }));
  job.disk.set_volume("/prefix", {});
  lose_stores(job, {1});
  make(job, {{"b", 2}}, true);
  EXPECT_TRUE(job.logged("the output p1 (generation "));
  EXPECT_TRUE(
      job.logged("is lost: it is not on the prefix, and cannot be flushed from the node-local stores: the "
                 "container of rank 1 is missing"));
}

/// To go back in checkpoints is no reason to lose what was put out.
TEST_F(UnflushedOutputs, SteppingBackDiscardsNone) {
  for (const bool is_flushed : {true, false}) {
    PersistentJob job(2);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      if (!is_flushed) once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      commit_step(engine, scope.rank, "b", 2);
      write_output(engine, scope.rank, "p1", 7);
    }));
    job.disk.set_volume("/prefix", {});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(Tag("a"), Newer::discard), "a");
      engine.close();
      commit_step(engine, scope.rank, "c", 3);
      engine.finalize();
    }));
    EXPECT_EQ(reopen(job).tag, "c");
    EXPECT_EQ(tags(job), is_flushed ? (std::vector<Tag>{"c", "p1", "b", "a"}) : (std::vector<Tag>{"c", "p1", "a"}));
    expect_read(job, "p1", 7);
    EXPECT_EQ(reopen(job).tag, "c");
  }
}

/// Where a store was removed while the job ran, with all that there was of it.
TEST_F(UnflushedOutputs, OneThatARemovedStoreTookAlongIsToldByName) {
  for (const bool all_of_it : {true, false}) {
    PersistentJob job(2);
    job.options.redundancy.every = 0;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 7);
      write_output(engine, scope.rank, "p2", 8);
      once(engine, scope.rank, [&] {
        job.disk.set_volume("/prefix", {});
        lose_stores(job, all_of_it ? std::vector<int>{0, 1} : std::vector<int>{1});
      });
      commit_step(engine, scope.rank, "b", 2);
      commit_step(engine, scope.rank, "c", 3);
      engine.finalize();
    }));
    EXPECT_EQ(times_logged(job, "another process removed the directory of the node-local store"), 1);
    for (const std::string tag : {"p1", "p2"}) {
      EXPECT_EQ(times_logged(job, compose("the output {} (generation ", tag)), 1);
    }
    EXPECT_EQ(times_logged(job, ") is lost: it is not on the prefix, and cannot be flushed"), 2);
  }
}

/// One line when the prefix fails, one when what fails is another thing, and one when it works again.
TEST_F(UnflushedOutputs, APrefixThatIsOutOfOrderIsSaidOnce) {
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    PersistentJob job(2);
    job.options.persistent.retries = 0;
    job.options.pipeline.mode = mode;
    job.surroundings = [](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = true;
    };
    Volume broken;
    broken.write_errno = EIO;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      write_output(engine, scope.rank, "p1", 1);
      for (int step = 1; step < 4; ++step) commit_step(engine, scope.rank, compose("a{}", step), step);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", broken); });
      for (int step = 4; step < 7; ++step) commit_step(engine, scope.rank, compose("a{}", step), step);
      write_output(engine, scope.rank, "p2", 2);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", {}); });
      for (int step = 7; step < 10; ++step) commit_step(engine, scope.rank, compose("a{}", step), step);
      once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
      commit_step(engine, scope.rank, "b", 10);
      engine.finalize();
    }));
    EXPECT_EQ(times_logged(job, "is not on the parallel filesystem"), 3);
    EXPECT_TRUE(job.logged("p1 is not on the parallel filesystem: no_space"));
    EXPECT_TRUE(job.logged("b is not on the parallel filesystem: no_space"));
    EXPECT_EQ(times_logged(job, "flushes to the prefix succeed again"), 1);
    EXPECT_EQ(times_logged(job, "the prefix could not record that a commit exists"), 2) << "no_space, then io";
    EXPECT_TRUE(job.logged("the newest checkpoint, b, is only in the node-local stores."));
  }
}

}  // namespace
}  // namespace kedge::faults::owed_outputs_test
