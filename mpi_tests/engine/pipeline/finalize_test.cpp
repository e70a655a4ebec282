// finalize with a limit: everything is done in time, or nothing is lost.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/held_file_system.hpp"
#include "harness/several_starts.hpp"
#include "kedge/transport.hpp"

namespace kedge::faults {
namespace {

constexpr std::chrono::hours kLong{1};

class Finalize : public FlushFixture {
 protected:
  Finalize() {
    job.options.pipeline.mode = PipelineMode::background;
    job.options.log.sink = [this](LogLevel, std::string_view line) {
      const std::lock_guard guard(mutex);
      log += std::string(line) + '\n';
    };
    job.surroundings = [this](int /*rank*/, engine::Environment& environment) {
      environment.waits_for_worker = false;
      environment.file_system = std::make_shared<HeldFileSystem>(environment.file_system, gate);
    };
  }
  /// What is held up goes on once rank 0 has said that it waits no longer: a write that has begun is waited for.
  void open_when_given_up() {
    opener = std::thread([this] {
      while (!has_said("finalize gave up")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      gate.open();
    });
  }
  [[nodiscard]] bool has_said(std::string_view words) {
    const std::lock_guard guard(mutex);
    return log.find(words) != std::string::npos;
  }
  void TearDown() override {
    if (opener.joinable()) opener.join();
  }
  Gate gate;
  std::thread opener;
  std::mutex mutex;
  std::string log;
  PersistentJob job{4};
};

TEST_F(Finalize, InTimeEverythingIsPersistent) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.finalize(kLong));
    EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
  }));
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, TheNewestIsFlushedByTheWorker) {
  job.options.persistent.every = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.finalize(kLong));
  }));
  EXPECT_TRUE(has_said("a is persistent")) << log;
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Finalize, InlineNothingIsGivenUp) {
  job.options.pipeline.mode = PipelineMode::inline_;
  job.options.persistent.every = 3;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_TRUE(engine.finalize(std::chrono::seconds(0)));
  }));
  lose_stores(job, {0, 1, 2, 3});
  EXPECT_EQ(reopen(job).step, 1);
}

/// The flush of a commit that is due, and of one that was left for the end.
class FinalizeGivesUp : public Finalize, public testing::WithParamInterface<int> {};

TEST_P(FinalizeGivesUp, AndTheNextStartHasTheNewestCommit) {
  job.options.persistent.every = static_cast<std::uint64_t>(GetParam());
  job.options.store.on_exit = OnExit::remove_if_persistent;
  gate.close();
  open_when_given_up();
  std::vector<std::string> heard(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.on_complete("a", Level::persistent, [&](const std::optional<Failure>& failure) {
      heard[static_cast<std::size_t>(scope.rank)] = failure ? failure->message : "reached";
    });
    (void)engine.need_checkpoint();
    if (scope.rank == 0 && GetParam() == 1) gate.await(4);
    (void)engine.need_checkpoint();
    engine.create("b");
    EXPECT_FALSE(engine.finalize(std::chrono::seconds(0)));
    EXPECT_EQ(code_of([&] { engine.create("after"); }), ErrorCode::bad_state);
  }));
  for (const std::string& words : heard)
    EXPECT_NE(words.find("was finalized before a was persistent"), std::string::npos) << words;
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "a");
  EXPECT_EQ(opened.step, 1);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, FinalizeGivesUp, testing::Values(1, 3));

/// Holds up every container that is made on a prefix.
class HangingFileSystem final : public ForwardingFileSystem {
 public:
  HangingFileSystem(std::shared_ptr<fs::FileSystem> inner, std::shared_ptr<Gate> gate)
      : ForwardingFileSystem(std::move(inner)), gate_(std::move(gate)) {}
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (path.find("/prefix/") != std::string::npos && path.find("/rank-") != std::string::npos) gate_->pass();
    return inner().create(path, mode);
  }

 private:
  std::shared_ptr<Gate> gate_;
};

/// A write that hangs for longer than the end of an engine waits is left alone, with all that it uses, the store's lock
/// among it.
TEST(FinalizeAlone, AWriteThatHangsIsLeftBehind) {
  const std::string directory = testing::TempDir() + "kedge-finalize-" + std::to_string(::getpid());
  std::filesystem::create_directories(directory + "/store");
  Options options;
  options.run = "hangs";
  options.store.path = directory + "/store";
  options.persistent.path = directory + "/prefix";
  options.persistent.every = 1;
  options.pipeline.mode = PipelineMode::background;
  options.log.level = LogLevel::error;
  const auto gate = std::make_shared<Gate>();
  gate->close();
  {
    engine::Environment environment = engine::Environment::system();
    environment.file_system = std::make_shared<HangingFileSystem>(environment.file_system, gate);
    std::optional<Engine> engine(engine::Environment::make_engine(single_process(), options, environment));
    int step = 1;
    State state;
    state.add("step", step);
    engine->checkpoint("a", state);
    gate->await(1);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_FALSE(engine->finalize(std::chrono::seconds(0)));
    engine.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(19)) << "it was waited for twice";
  }
  EXPECT_EQ(code_of([&] { const Engine next(single_process(), options); }), ErrorCode::busy);
  gate->open();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace kedge::faults
