// What one stage of a commit that fails means for the others, for who waits for a level, and for the commits after it,
// inline and in the background.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/blocking_file_system.hpp"
#include "harness/engine_checks.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/outputs_fixture.hpp"
#include "persist/run_start.hpp"
#include "pipeline/stage_list.hpp"

namespace kedge::faults::failed_stages_test {
namespace {

/// What does not work, on every rank.
struct Broken {
  std::atomic<bool> parity = false;   ///< no file of parity can be made
  std::atomic<bool> flush_b = false;  ///< no container of "b" can be made on the prefix
  std::atomic<bool> status = false;   ///< a file of the stores that is in use cannot be looked at, if `path` is it
  std::string path;
  std::atomic<int> looks = 0;  ///< the look after so many at a file in use on node1 fails, once; 0: none does
  Gate prefix;                 ///< containers pass it on their way to the prefix
};

class LookedAtFile final : public ForwardingFile {
 public:
  LookedAtFile(std::unique_ptr<fs::File> inner, Broken& broken) : ForwardingFile(std::move(inner)), broken_(broken) {}
  [[nodiscard]] fs::FileStatus status() override {
    const bool is_last_look = path().starts_with("/nodes/node1/") && broken_.looks > 0 && --broken_.looks == 0;
    if (is_last_look || (broken_.status && path() == broken_.path)) throw Error(ErrorCode::io, "as the test has it");
    return ForwardingFile::status();
  }

 private:
  Broken& broken_;
};

class BrokenFileSystem final : public ForwardingFileSystem {
 public:
  BrokenFileSystem(std::shared_ptr<fs::FileSystem> inner, Broken& broken)
      : ForwardingFileSystem(std::move(inner)), broken_(broken) {}
  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return looked_at(inner().open(path, access));
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    const bool is_on_prefix = path.starts_with("/prefix/") && path.find("/rank-") != std::string::npos;
    if (broken_.parity && path.find("/parity-") != std::string::npos) throw Error(ErrorCode::io, "as the test has it");
    if (is_on_prefix && broken_.flush_b && path.starts_with("/prefix/b.")) {
      throw Error(ErrorCode::io, "as the test has it");
    }
    if (is_on_prefix) broken_.prefix.pass();
    return looked_at(inner().create(path, mode));
  }

 private:
  [[nodiscard]] std::unique_ptr<fs::File> looked_at(std::unique_ptr<fs::File> file) const {
    return file ? std::make_unique<LookedAtFile>(std::move(file), broken_) : nullptr;
  }

  Broken& broken_;
};

/// In the background if the parameter is true.
class FailedStages : public OutputsFixture, public testing::WithParamInterface<bool> {
 protected:
  FailedStages() {
    job.options.pipeline.mode = GetParam() ? PipelineMode::background : PipelineMode::inline_;
    job.options.persistent.retries = 0;
    job.surroundings = [this](int /*rank*/, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = waits_for_worker;
      environment.file_system = std::make_shared<BrokenFileSystem>(environment.file_system, broken);
    };
  }

  bool waits_for_worker = true;
  Broken broken;
  PersistentJob job{3};
};
INSTANTIATE_TEST_SUITE_P(Pipelines, FailedStages, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "background" : "inline"; });

using Words = std::vector<std::string>;

/// A persistent commit is protected, too: nobody is told that it is not while it is being flushed, or later.
TEST_P(FailedStages, ACommitThatIsFlushedWithoutParityIsToldAsProtected) {
  waits_for_worker = false;
  broken.parity = true;
  if (GetParam()) broken.prefix.close();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Words heard;
    const auto hear = [&heard](const std::string& name) {
      return [&heard, name](const std::optional<Failure>& failure) {
        heard.push_back(name + ": " + (failure ? std::string(to_string(failure->code)) : "reached"));
      };
    };
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::protected_, hear("protected"));
    engine.on_complete("a", Level::persistent, hear("persistent"));
    if (GetParam()) {
      once(engine, scope.rank, [&] { broken.prefix.await(3); });
      EXPECT_EQ(heard, Words()) << "it may become persistent";
      EXPECT_EQ(engine.level("a"), Level::local);
      once(engine, scope.rank, [&] { broken.prefix.open(); });
    }
    engine.wait("a", Level::persistent);
    (void)engine.need_checkpoint();
    engine.on_complete("a", Level::protected_, hear("later"));
    (void)engine.need_checkpoint();
    EXPECT_EQ(heard, (Words{"protected: reached", "persistent: reached", "later: reached"}));
  }));
  EXPECT_TRUE(job.logged("a is not protected against the loss of a node"));
}

/// The newest is not on the prefix by that.
TEST_P(FailedStages, AWaitForAnOlderCommitLeavesTheNextDueForTheFailedFlush) {
  job.options.persistent.every = 2;
  job.options.store.keep = 2;
  broken.flush_b = true;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("b"), Level::protected_);
    engine.wait("a", Level::persistent);
    commit_step(engine, scope.rank, "c", 3);
    EXPECT_EQ(engine.level("c"), Level::persistent);
    commit_step(engine, scope.rank, "d", 4);
    EXPECT_EQ(engine.level("d"), Level::protected_) << "the count began anew";
  }));
}

/// An output is flushed in any case, and makes up for no checkpoint.
TEST_P(FailedStages, AnOutputLeavesTheNextCheckpointDueForTheFailedFlush) {
  job.options.persistent.every = 3;
  broken.flush_b = true;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const char* tag : {"a", "a", "b"}) commit_step(engine, scope.rank, tag, 1);
    EXPECT_EQ(engine.level("b"), Level::protected_);
    write_output(engine, scope.rank, "p1", 2);
    commit_step(engine, scope.rank, "c", 3);
    EXPECT_EQ(engine.level("c"), Level::persistent);
  }));
}

/// A failure that may pass puts it out of reach neither of the commits after it nor of the end.
TEST_P(FailedStages, AnOutputWhoseContainerCouldNotBeReadTwiceIsFlushedAtTheEnd) {
  job.options.persistent.every = 5;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    once(engine, scope.rank, [&] { job.disk.set_volume("/prefix", full()); });
    write_output(engine, scope.rank, "p1", 2);
    once(engine, scope.rank, [&] {
      job.disk.set_volume("/prefix", {});
      broken.path = faults::container_of(job.disk, 1, "p1");
      broken.status = true;
    });
    commit_step(engine, scope.rank, "b", 3);
    commit_step(engine, scope.rank, "c", 4);
    EXPECT_NE(engine.level("p1"), Level::persistent);
    once(engine, scope.rank, [&] { broken.status = false; });
    engine.finalize();
  }));
  EXPECT_EQ(tags(job), (std::vector<Tag>{"c", "p1"}));
}

/// Whatever the look at its container is for that fails.
TEST_P(FailedStages, AnOutputWhoseFlushCouldNotBePreparedFollowsWithTheNextCheckpoint) {
  int not_prepared = 0;
  for (int looks = 1;; ++looks) {
    SCOPED_TRACE(looks);
    ASSERT_LT(looks, 50);
    int left = 0;
    PersistentJob one(3);
    one.options.pipeline.mode = job.options.pipeline.mode;
    one.options.persistent.retries = 0;
    one.surroundings = job.surroundings;
    expect_all_returned(one.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
      once(engine, scope.rank, [&] { broken.looks = looks; });
      const auto failure = failure_of([&] {
        engine.create_output("p1", {});
        const std::vector<double> plot(100, 2);
        (void)engine.save("plot", region(std::span(plot)));
        engine.commit();
      });
      const Level level = engine.level("p1");
      once(engine, scope.rank, [&] { left = broken.looks.exchange(0); });
      commit_step(engine, scope.rank, "b", 3);
      if (failure) return;
      EXPECT_EQ(engine.level("p1"), Level::persistent);
      if (scope.rank == 0 && level != Level::persistent) ++not_prepared;
    }));
    if (left > 0) break;
  }
  EXPECT_GT(not_prepared, 0);
}

/// Notes the checkpoints that come to it.
class LastStage final : public pipeline::Stage {
 public:
  explicit LastStage(std::vector<Tag>& seen) : seen_(seen) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "last"; }
  [[nodiscard]] Level level() const noexcept override { return Level::none; }
  [[nodiscard]] std::string failure_warning(const CommitHead& commit, const Failure& failure,
                                            std::uint64_t) const override {
    return compose("{}: {}", commit.tag, to_string(failure));
  }
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, const pipeline::CommitFiles& files) override {
    if (group.is_root()) seen_.push_back(files.commit.tag);
    return std::nullopt;
  }

 private:
  std::vector<Tag>& seen_;
};

/// Its results would be taken for those of the start that has taken over.
TEST_P(FailedStages, NoStageFollowsAFlushThatFindsALaterStart) {
  std::vector<Tag> seen;
  const auto surroundings = job.surroundings;
  job.surroundings = [&](int rank, engine::EngineEnvironment& environment) {
    surroundings(rank, environment);
    environment.more_stages = [&seen] {
      using pipeline::StagePolicy;
      std::vector<pipeline::StageWithPolicy> stages;
      stages.push_back(
          {std::make_unique<LastStage>(seen), std::make_unique<StagePolicy>(StagePolicy::Rule::every_nth, 1)});
      return stages;
    };
  };
  job.options.run = "overtaken";
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "x", 1);
    once(engine, scope.rank, [&] {
      persist::RunStart later({job.disk.view(0), "/prefix", "overtaken"});
      (void)later.take_incarnation();
      later.mark_begun({});
    });
    commit_step(engine, scope.rank, "y", 2);
    EXPECT_TRUE(code_of([&] { engine.create("z"); }));
  }));
  EXPECT_EQ(seen, std::vector<Tag>{"x"});
}

class SomeFlush final : public pipeline::Stage {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "flush"; }
  [[nodiscard]] Level level() const noexcept override { return Level::persistent; }
  [[nodiscard]] std::string failure_warning(const CommitHead&, const Failure&, std::uint64_t) const override {
    return {};
  }
  [[nodiscard]] std::optional<Failure> run(const comm::Group&, const pipeline::CommitFiles&) override { return {}; }
};

/// As the last checkpoint before a deadline is, which may turn out not to be the last.
TEST(DueStages, ACheckpointThatIsMadeForALowerLevelLeavesTheNextDueForTheFailedFlush) {
  std::vector<pipeline::StageWithPolicy> stages;
  using pipeline::StagePolicy;
  stages.push_back(
      {std::make_unique<SomeFlush>(), std::make_unique<StagePolicy>(StagePolicy::Rule::nth_since_last, 5)});
  pipeline::StageList list(std::move(stages));
  list[0].policy->mark_result(true);
  const auto is_due = [&](std::optional<Level> highest) {
    list.count_checkpoint();
    pipeline::CommitProgress progress = list.progress_of({});
    list.mark_due(progress, highest, list.take_failed_stages());
    list.restart_due(progress);
    return progress.has_due_stage();
  };
  EXPECT_FALSE(is_due(Level::local));
  EXPECT_TRUE(is_due({}));
  EXPECT_FALSE(is_due({})) << "it was made up for";
}

}  // namespace
}  // namespace kedge::faults::failed_stages_test
