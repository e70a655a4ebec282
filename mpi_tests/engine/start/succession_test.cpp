// Which start may continue from the one before: a restart, never another part of one launch, another task of an array,
// or an engine after one that came to its end.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "engine/start/variables.hpp"
#include "harness/engine_checks.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/named_communicator.hpp"
#include "harness/several_starts.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::faults::succession_test {
namespace {

/// Of launch `key`, with `first` as rank 0's place among `launched` processes.
Variables mpirun(const std::string& key, int first, int launched = 4) {
  return {{"OMPI_MCA_orte_precondition_transports", key},
          {"OMPI_COMM_WORLD_RANK", std::to_string(first)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(launched)}};
}

/// Calls `then` once, before the first lock is taken.
class BeforeTheLock final : public ForwardingFileSystem {
 public:
  BeforeTheLock(std::shared_ptr<fs::FileSystem> inner, std::function<void()> then)
      : ForwardingFileSystem(std::move(inner)), then_(std::move(then)) {}
  std::unique_ptr<fs::Lock> try_lock(const std::string& path, std::string_view holder) override {
    if (then_) std::exchange(then_, nullptr)();
    return ForwardingFileSystem::try_lock(path, holder);
  }

 private:
  std::function<void()> then_;
};

struct Succession : testing::Test {
  SimulatedJob job{2};
  void SetUp() override { name_communicator(""); }

  void name_communicator(const std::string& name) {
    job.in_front = [name](int /*rank*/, std::unique_ptr<Communicator> own) {
      return std::make_unique<NamedCommunicator>(std::move(own), name);
    };
  }

  void enter(Variables variables, const std::string& process = "vm/1@1") {
    job.surroundings = [=](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.find_variable = from(variables);
      environment.processes = {process, "vm/3@1", ""};
    };
  }

  /// One start that commits `step` and finalizes.
  void run_to_the_end(const Tag& tag, int step) {
    for (const auto& outcome : job.start([&](RankScope& scope) {
           Engine engine = scope.make_engine();
           commit_step(engine, scope.rank, tag, step);
           engine.finalize();
         })) {
      EXPECT_FALSE(outcome.failure) << to_string(*outcome.failure);
    }
  }

  /// One that commits `step` and is left by an exception.
  void run_until_thrown_out(const Tag& tag, int step) {
    (void)job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, tag, step);
      throw Error(ErrorCode::io, "the application's");
    });
  }

  void expect_refused(const std::vector<std::string>& words) {
    const auto before = job.disk.snapshot();
    const auto failure = reopen(job).failure.value_or(Failure{});
    EXPECT_EQ(failure.code, ErrorCode::mismatch) << failure.message;
    for (const auto& word : words) EXPECT_TRUE(says(failure.message, {word})) << word << ": " << failure.message;
    EXPECT_TRUE(says(failure.message, {"KEDGE_RUN", "KEDGE_OPEN_CHAINED=1"})) << failure.message;
    job.options.open.chained = true;
    EXPECT_FALSE(reopen(job).failure);
    job.options.open.chained = false;
    job.disk.restore(before);
  }
};

TEST_F(Succession, AnotherPartOfALaunchIsRefused) {
  enter(mpirun("k", 0));
  run_until_thrown_out("a", 1);
  enter(mpirun("k", 2));
  expect_refused({"process 0 of the launch", "process 2", "MPI_Comm_set_name"});
  enter(mpirun("k", 0));
  EXPECT_EQ(reopen(job).step, 1) << "the same part, which did not come to its end";
  enter(mpirun("other", 0));
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Succession, AnotherPartOfALaunchThatWasAsLargeIsRefused) {
  enter(mpirun("k", 0));
  commit_steps(job, {{"a", 1}});
  enter(mpirun("other", 2));
  expect_refused({"or of one of the same size before"});
  enter(mpirun("other", 2, 8));
  EXPECT_EQ(reopen(job).step, 1) << "where the launch is not as large, parts lie elsewhere";
}

TEST_F(Succession, APartThatRunsIsSeenByTheOthers) {
  enter(mpirun("k", 0));
  std::optional<Failure> second;
  job.options.store.lock_timeout_s = 1e6;
  for (const auto& outcome : job.start([&](RankScope& scope) {
         Engine engine = scope.make_engine();
         once(engine, scope.rank, [&] {
           persist::RunStart start({job.disk.view(0), "/prefix", "test"});
           (void)start.take_incarnation({"OMPI_MCA_orte_precondition_transports k", 2, 4, 2, "", "", {}});
           const auto before = start.previous_start();
           ASSERT_TRUE(before);
           EXPECT_EQ(before->launch_info.first_process, 0);
           start.withdraw();
         });
         engine.finalize();
       })) {
    EXPECT_FALSE(outcome.failure);
  }
}

TEST_F(Succession, AnEngineAfterOneThatCameToItsEndIsRefused) {
  for (const bool launched : {true, false}) {
    SCOPED_TRACE(launched);
    job.disk.remove_all("/prefix");
    job.disk.remove_all("/nodes");
    enter(launched ? mpirun("k", 0) : Variables{});
    run_to_the_end("a", 1);
    expect_refused({"already finished in this process"});
    enter(launched ? mpirun("other", 0) : Variables{}, "vm/2@9");
    EXPECT_EQ(reopen(job).step, 1) << "another launch is a restart";
  }
}

TEST_F(Succession, AnEngineAfterOneThatWasLeftWithoutAnErrorIsRefused) {
  enter({});
  for (const auto& outcome : job.start([&](RankScope& scope) {
         {
           Engine engine = scope.make_engine();
           commit_step(engine, scope.rank, "a", 1);
         }
         EXPECT_THROW((void)scope.make_engine(), Error);
       })) {
    EXPECT_FALSE(outcome.failure);
  }
}

TEST_F(Succession, AnEngineAfterOneThatFailedGoesOn) {
  enter({});
  for (const auto& outcome : job.start([&](RankScope& scope) {
         try {
           Engine engine = scope.make_engine();
           commit_step(engine, scope.rank, "a", 1);
           throw std::runtime_error("the application's");
         } catch (const std::runtime_error&) {
         }
         {
           Engine engine = scope.make_engine();
           EXPECT_EQ(engine.open(latest), "a");
           engine.close();
           EXPECT_THROW(engine.commit(), Error) << "out of order";
         }
         Engine engine = scope.make_engine();
         EXPECT_EQ(engine.open(latest), "a");
         engine.close();
         engine.finalize();
       })) {
    EXPECT_FALSE(outcome.failure) << to_string(*outcome.failure);
  }
}

TEST_F(Succession, AnotherTaskOfAnArrayIsRefused) {
  enter({{"SLURM_ARRAY_TASK_ID", "3"}}, "vm/1@1");
  run_to_the_end("a", 1);
  enter({{"SLURM_ARRAY_TASK_ID", "4"}}, "vm/2@1");
  expect_refused({"task 3 of a job array", "task 4", "--array=1-10%1"});
  enter({{"SLURM_ARRAY_TASK_ID", "3"}}, "vm/3@1");
  EXPECT_EQ(reopen(job).step, 1) << "the same task again";
  enter({}, "vm/4@1");
  EXPECT_EQ(reopen(job).step, 1) << "by hand, outside of an array";
}

/// Three begin at once: the first runs, the third holds a number when the second, which is refused, gives its own back.
TEST_F(Succession, AStartThatWasRefusedIsNobodysPredecessor) {
  enter({{"SLURM_ARRAY_TASK_ID", "1"}}, "vm/1@1");
  run_until_thrown_out("a", 1);
  persist::RunStart second({job.disk.view(0), "/prefix", "test"});
  (void)second.take_incarnation({"second", -1, -1, 2, "2", "", {}});
  persist::RunStart third({job.disk.view(0), "/prefix", "test"});
  (void)third.take_incarnation({"third", -1, -1, 2, "3", "", {}});
  second.withdraw();
  EXPECT_EQ(third.previous_start()->incarnation, 1U);
  third.withdraw();
  enter({{"SLURM_ARRAY_TASK_ID", "2"}}, "vm/2@1");
  expect_refused({"task 1 of a job array", "task 2"});
  enter({{"SLURM_ARRAY_TASK_ID", "1"}}, "vm/3@1");
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Succession, APartThatWasRefusedIsNobodysPredecessor) {
  enter(mpirun("k", 0));
  run_until_thrown_out("a", 1);
  const std::string launch = "OMPI_MCA_orte_precondition_transports k";
  persist::RunStart second({job.disk.view(0), "/prefix", "test"});
  (void)second.take_incarnation({launch, 2, 4, 2, "", "", {}});
  persist::RunStart third({job.disk.view(0), "/prefix", "test"});
  (void)third.take_incarnation({launch, 3, 4, 2, "", "", {}});
  second.withdraw();
  third.withdraw();
  EXPECT_EQ(reopen(job).step, 1);
}

/// A job that ends because it was asked to has not come to its end: what made this start may start it again.
TEST_F(Succession, AnEngineThatWasAskedToEndIsContinued) {
  enter(mpirun("k", 0), "vm/1@1");
  job.options.exit.margin_s = 10;
  job.options.deadline = "1970-01-01T00:00:01Z";
  for (const auto& outcome : job.start([&](RankScope& scope) {
         Engine engine = scope.make_engine();
         EXPECT_TRUE(engine.need_checkpoint());
         commit_step(engine, scope.rank, "a", 1);
         EXPECT_TRUE(engine.should_exit());
         engine.finalize();
       })) {
    EXPECT_FALSE(outcome.failure) << to_string(*outcome.failure);
  }
  job.options.deadline = "none";
  EXPECT_EQ(reopen(job).step, 1);
}

/// Ranks of the whole launch may have another order after the nodes changed.
TEST_F(Succession, TheWholeLaunchInAnotherOrderIsNoOtherPart) {
  enter(mpirun("k", 0, 2));
  run_until_thrown_out("a", 1);
  for (const std::string key : {"k", "other"}) {
    enter(mpirun(key, 1, 2));
    EXPECT_EQ(reopen(job).step, 1) << key;
  }
}

/// A start by hand in between does not hide whose the run is.
TEST_F(Succession, AStartByHandLeavesTheRunToItsTask) {
  enter({{"SLURM_ARRAY_TASK_ID", "1"}}, "vm/1@1");
  run_until_thrown_out("a", 1);
  enter({}, "vm/2@1");
  EXPECT_EQ(reopen(job).step, 1);
  enter({{"SLURM_ARRAY_TASK_ID", "2"}}, "vm/3@1");
  expect_refused({"task 1 of a job array"});
}

/// Killed before it had its stores, it never had the run.
TEST_F(Succession, AStartThatWasKilledOnItsWayIsNobodysPredecessor) {
  enter({{"SLURM_ARRAY_TASK_ID", "1"}}, "vm/1@1");
  run_until_thrown_out("a", 1);
  persist::RunStart killed({job.disk.view(0), "/prefix", "test"});
  (void)killed.take_incarnation({"killed", -1, -1, 2, "2", "", {}});
  enter({{"SLURM_ARRAY_TASK_ID", "1"}}, "vm/3@1");
  EXPECT_EQ(reopen(job).step, 1);
}

/// The first look finds a note that is not written yet.
TEST_F(Succession, APartThatBeganAtTheSameTimeIsSeenOnceTheStoreIsHad) {
  enter(mpirun("k", 0));
  run_until_thrown_out("a", 1);
  const std::string note = "/prefix/.kedge/test/incarnation-1";
  const auto file = job.disk.view(0)->open(note, fs::Access::read_write);
  std::vector<std::byte> text(file->status().size_bytes);
  (void)file->read_with_crc(0, text, 0);
  file->truncate(0);
  enter(mpirun("k", 2));
  job.surroundings = [&, of_part = job.surroundings](int rank, engine::EngineEnvironment& environment) {
    of_part(rank, environment);
    if (rank == 0) {
      environment.file_system = std::make_shared<BeforeTheLock>(environment.file_system, [&] {
        (void)job.disk.view(0)->open(note, fs::Access::read_write)->write_with_crc(0, text, 0);
      });
    }
  };
  EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::mismatch);
}

/// One of two named parts may have committed before the other has an engine.
TEST_F(Succession, NamedPartsOfALaunchMayBeginOneAfterTheOther) {
  job.options.run.clear();
  name_communicator("ocean");
  enter(mpirun("k", 0));
  run_until_thrown_out("a", 1);
  name_communicator("ice");
  enter(mpirun("k", 2));
  EXPECT_FALSE(reopen(job).failure);
  name_communicator("land");
  enter(mpirun("other", 3));
  EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::mismatch) << "in another launch";
}

TEST_F(Succession, AFreshStartTakesUpNothing) {
  enter({}, "vm/1@1");
  run_to_the_end("a", 1);
  job.options.start = StartMode::fresh;
  const Opened fresh = reopen(job);
  EXPECT_EQ(fresh.tag, std::nullopt);
  EXPECT_FALSE(fresh.failure);
}

TEST_F(Succession, ANoteThatCannotBeReadRefusesNothing) {
  enter(mpirun("k", 0));
  run_to_the_end("a", 1);
  const auto note = job.disk.view(0)->open("/prefix/.kedge/test/incarnation-1", fs::Access::read_write);
  note->write_with_crc(0, std::as_bytes(std::span(std::string_view("no json"))), 0);
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Succession, AStartThatOnlyFlushesMayFlushForAnotherTask) {
  enter({{"SLURM_ARRAY_TASK_ID", "3"}}, "vm/1@1");
  run_to_the_end("a", 1);
  enter({{"SLURM_ARRAY_TASK_ID", "4"}}, "vm/2@1");
  job.surroundings = [as_task = job.surroundings](int rank, engine::EngineEnvironment& environment) {
    as_task(rank, environment);
    environment.is_drain = true;
  };
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Succession, AStartThatOnlyFlushesIsNobodysPredecessor) {
  enter(mpirun("k", 0));
  run_to_the_end("a", 1);
  {
    persist::RunStart drain({job.disk.view(0), "/prefix", "test"});
    (void)drain.take_incarnation({"drain", 0, 1, 2, "", "", {}});
    drain.mark_drain();
    drain.mark_begun({});
  }
  enter(mpirun("k", 2));
  expect_refused({"process 0 of the launch"});
}

}  // namespace
}  // namespace kedge::faults::succession_test
