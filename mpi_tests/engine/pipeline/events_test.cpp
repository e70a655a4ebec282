// What an engine says of its checkpoints: one line each in the log, counters that add up, and events as whole JSON
// lines, whatever is killed, rotated, shared or cannot be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "engine/start/variables.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"
#include "harness/simulated_nodes.hpp"
#include "kedge/transport.hpp"
#include "pipeline/event_log.hpp"

namespace kedge::faults::events_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

/// Every line must be one object with what all events have.
std::vector<Json> events_in(const std::string& text) {
  std::vector<Json> events;
  std::istringstream lines(text);
  EXPECT_TRUE(text.empty() || text.back() == '\n') << "the last line was cut";
  for (std::string line; std::getline(lines, line);) {
    Json event = Json::parse(line, nullptr, false);
    EXPECT_TRUE(event.is_object()) << line;
    if (!event.is_object()) continue;
    for (const char* field : {"time", "event", "run", "run_id", "incarnation", "node", "rank"}) {
      EXPECT_TRUE(event.contains(field)) << field << " in " << line;
    }
    events.push_back(std::move(event));
  }
  return events;
}

std::vector<std::string> names_of(const std::vector<Json>& events) {
  std::vector<std::string> names;
  for (const Json& event : events) {
    names.push_back(event["event"].get<std::string>() + (event.contains("tag") ? " " + std::string(event["tag"]) : ""));
  }
  return names;
}

/// Two nodes of two ranks each; in the background if the parameter is true.
class Events : public FlushFixture, public ::testing::WithParamInterface<bool> {
 protected:
  Events() {
    job.ranks_per_node = 2;
    job.options.pipeline.mode = GetParam() ? PipelineMode::background : PipelineMode::inline_;
    job.options.events.path = "/events";
    job.surroundings = [](int rank, engine::EngineEnvironment& environment) {
      environment.waits_for_worker = false;
      if (rank == 0) environment.find_variable = from({{"PBS_JOBID", "7.server/1"}});  // what rank 0 knows, all write
    };
  }
  [[nodiscard]] std::vector<Json> of_node(const std::string& node) {
    return events_in(text_of(job, "/events/1000-7.server_1-test-" + node + ".jsonl"));
  }
  PersistentJob job{4};
};

TEST_P(Events, AreWrittenOnceANodeWithAllFields) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
    engine.finalize();
  }));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
  }));
  for (const std::string node : {"node0", "node1"}) {
    const std::vector<Json> events = of_node(node);
    std::vector<std::string> names = names_of(events);
    EXPECT_THAT(names, IsSupersetOf({"start", "open b"})) << "of the second start";
    names.resize(9);
    EXPECT_THAT(names, UnorderedElementsAre("start", "commit a", "protected a", "persistent a", "commit b",
                                            "protected b", "retired a", "persistent b", "finalize"));
    for (const Json& event : events) {
      EXPECT_THAT(std::string(event["time"]),
                  ContainsRegex("^20[0-9][0-9]-[0-9]+-[0-9]+T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z$"));
      EXPECT_EQ(event["run"], "test");
      EXPECT_EQ(event["node"], node);
      EXPECT_EQ(event["rank"], node == "node0" ? 0 : 2);
      if (!event.contains("tag")) continue;
      EXPECT_EQ(event["generation"].get<std::uint64_t>() % 1'000'000, event["tag"] == "a" ? 1U : 2U);
      EXPECT_EQ(std::string(event["commit_id"]).size(), 32U);
      if (event["event"] == "retired") continue;
      EXPECT_GT(event["bytes"].get<std::uint64_t>(), 4U * 4096U) << "of all ranks: " << event;
      EXPECT_GE(event[event["event"] == "commit" ? "blocked_seconds" : "seconds"].get<double>(), 0) << event;
    }
    EXPECT_EQ(events[0]["ranks"], 4);
    EXPECT_EQ(events[0]["user"], 1000);
    EXPECT_EQ(events[0]["job"], "7.server_1");
    EXPECT_EQ(events[0]["prefix"], "/prefix");
    EXPECT_EQ(events[0]["incarnation"], 1);
    EXPECT_EQ(events.back()["incarnation"], 2);
    EXPECT_EQ(events.back()["source"], "in place");
  }
}

TEST_P(Events, TellOfFailures) {
  job.options.persistent.retries = 1;
  job.options.events.path = "/{run}.{node}.log";
  Volume full;
  full.write_errno = ENOSPC;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    (void)engine.need_checkpoint();
    if (scope.rank == 0) job.disk.set_volume("/prefix", full);
    (void)engine.need_checkpoint();
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(code_of([&] { engine.wait("b", Level::persistent); }), ErrorCode::no_space);
    engine.create("c");
    (void)engine.save("", Region{});  // a name that cannot be
    EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
    const Counters counters = engine.counters();
    EXPECT_EQ(counters.commits_failed, 1U);
    EXPECT_EQ(counters.flushes_failed, 2U);
    EXPECT_EQ(counters.flush_retries, GetParam() ? 1U : 0U);
  }));
  job.disk.set_volume("/prefix", {});
  const std::vector<Json> events = events_in(text_of(job, "/test.node1.log"));
  std::size_t failures = 0;
  for (const Json& event : events) {
    if (!event.contains("code")) continue;
    ++failures;
    EXPECT_EQ(event["code"], event["tag"] == "c" ? "invalid_argument" : "no_space");
    EXPECT_FALSE(std::string(event["text"]).empty());
    EXPECT_EQ(event["event"], event["tag"] == "c"         ? "commit_failed"
                              : event.contains("seconds") ? "flush_retry"
                                                          : "flush_failed");
  }
  EXPECT_EQ(failures, GetParam() ? 4U : 3U);
}

/// A place that cannot be written costs one warning and no checkpoint.
TEST_P(Events, ThatCannotBeWrittenAreAWarningAndNoMore) {
  Volume read_only;
  read_only.write_errno = EROFS;
  job.disk.make_directories("/events", 0755);
  job.disk.set_volume("/events", read_only);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::persistent);
    engine.finalize();
  }));
  const auto lines = job.log();
  EXPECT_EQ(std::ranges::count_if(lines,
                                  [](const auto& line) {
                                    return says(line, {"event logging is off", "events.path"});
                                  }),
            2)
      << "one of each node";
  EXPECT_EQ(tags(job), std::vector<Tag>{"a"});
}

TEST_P(Events, FilesAreRotated) {
  job.options.events.max_bytes = 4096;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 12; ++step) {
      commit_step(engine, scope.rank, "step-" + std::to_string(step), step);
      engine.wait("step-" + std::to_string(step), Level::persistent);
    }
    engine.finalize();
  }));
  const std::string now = text_of(job, "/events/1000-7.server_1-test-node0.jsonl");
  const std::string before = text_of(job, "/events/1000-7.server_1-test-node0.jsonl.1");
  EXPECT_LE(now.size(), 4096U);
  EXPECT_LE(before.size(), 4096U);
  const std::vector<Json> all = events_in(before + now);
  EXPECT_GT(before.size(), 3000U);
  EXPECT_EQ(all.back()["event"], "finalize");
  const auto files = job.disk.view(0)->list("/events");
  EXPECT_EQ(files.size(), 4U) << "two of each node";
}

/// What the counters of all ranks are, whoever did the work.
TEST_P(Events, CountersAddUp) {
  job.options.persistent.every = 2;
  job.options.events.path.clear();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int step = 1; step <= 6; ++step) {
      commit_step(engine, scope.rank, "step-" + std::to_string(step), step);
    }
    engine.wait("step-6", Level::persistent);
    EXPECT_EQ(code_of([&] { engine.pin("step-5"); }), ErrorCode::not_found);  // when nothing is under way
    const Counters counters = engine.counters();
    EXPECT_EQ(counters.commits, 6U);
    EXPECT_EQ(counters.protections, 6U);
    EXPECT_EQ(counters.flushes, 3U);
    EXPECT_EQ(counters.retired, 5U);
    EXPECT_EQ(counters.pending, 0U);
    EXPECT_EQ(counters.commits_failed + counters.protections_failed + counters.flushes_failed + counters.opens, 0U);
    EXPECT_GT(counters.saved_bytes, 0U);
    EXPECT_EQ(counters.protected_bytes, counters.saved_bytes);
    EXPECT_EQ(counters.flushed_bytes * 2, counters.saved_bytes);
    EXPECT_EQ(counters.fetched_bytes, 0U);
    EXPECT_GE(counters.persistent_max_s, counters.persistent_last_s);
  }));
  lose_stores(job, {0, 1});
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "step-6");
    engine.close();
    EXPECT_EQ(engine.counters().opens, 1U);
    EXPECT_GT(engine.counters().fetched_bytes, 4096U);
  }));
  EXPECT_EQ(job.disk.snapshot().count("/events"), 0U) << "off by default";
}

TEST_P(Events, ACheckpointIsOneLineInTheLog) {
  job.options.persistent.every = 2;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::persistent);
    engine.finalize();
  }));
  std::vector<std::string> about;
  for (const std::string& line : job.log()) {
    if (says(line, {"committed "}) || says(line, {" is persistent"}) || says(line, {" is protected"}))
      about.push_back(line);
  }
  const std::string time = "[0-9.]+ (us|ms|s)";
  EXPECT_THAT(
      about,
      ElementsAre(
          ContainsRegex(
              "^committed a of run 'test' \\(generation [0-9]+\\): [0-9.]+ KiB on 4 ranks, protected \\(partner\\), "
              "blocked " +
              time + ", protected after " + time + "$"),
          ContainsRegex(
              "^committed b of run 'test' \\(generation [0-9]+\\): [0-9.]+ KiB on 4 ranks, protected \\(partner\\) and "
              "persistent, blocked " +
              time + ", protected after " + time + ", persistent after " + time + "$")));
}

INSTANTIATE_TEST_SUITE_P(Pipelines, Events, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "background" : "inline"; });

TEST(EventLines, AreJsonWhateverTheNamesAre) {
  pipeline::EventOrigin origin;
  origin.run.name = "r\"un";
  origin.node = "no\nde";
  CommitHead commit;
  commit.tag = "\xff\xfe";
  const Failure failure{ErrorCode::io, "a \"quoted\"\nline", 1, "/p\x80", EIO};
  const std::string line =
      pipeline::to_line(origin, 1'700'000'000'042'999'999, {.name = "x", .commit = &commit, .failure = &failure});
  const std::vector<Json> events = events_in(line);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["time"], "2023-11-14T22:13:20.042Z");
  EXPECT_EQ(events[0]["node"], "no\nde");
  EXPECT_EQ(events[0]["code"], "io");
}

TEST(EventLines, SayWhoseOnlyAtTheStart) {
  const pipeline::EventOrigin nobodys{{"heat", {}, 1}, "n1", 0, 7, "", "/p"};
  EXPECT_FALSE(events_in(pipeline::to_line(nobodys, 0, {.name = "start", .has_origin = true}))[0].contains("job"));
  EXPECT_FALSE(events_in(pipeline::to_line(nobodys, 0, {.name = "commit"}))[0].contains("prefix"));
}

TEST(EventFiles, AreNamedByUserAndJob) {
  pipeline::EventOrigin origin{{"heat", {}, 1}, "n1", 0, 61001, "12[3]", "/p"};
  EXPECT_EQ(pipeline::expand_events_path("/all", origin), "/all/61001-12[3]-heat-n1.jsonl");
  EXPECT_EQ(pipeline::expand_events_path("/of-{user}/{job}", origin), "/of-61001/12[3]/61001-12[3]-heat-n1.jsonl");
  EXPECT_EQ(pipeline::expand_events_path("/all/{node}-{user}-{job}", origin), "/all/n1-61001-12[3]");
  origin.job.clear();
  EXPECT_EQ(pipeline::expand_events_path("/all", origin), "/all/61001-nojob-heat-n1.jsonl");
}

/// On the real file system.
class RealEvents : public ::testing::Test {
 protected:
  RealEvents() {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory + "/store");
    options.store.path = directory + "/store";
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 1;
    options.events.path = directory + "/events-{run}-{node}.jsonl";
    options.log.level = LogLevel::warning;
  }
  ~RealEvents() override { std::filesystem::remove_all(directory); }
  /// The text of all files whose name begins so.
  [[nodiscard]] std::string text(const std::string& begin) const {
    std::stringstream all;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().filename().string().starts_with(begin)) all << std::ifstream(entry.path()).rdbuf();
    }
    return all.str();
  }
  void run(const std::string& name, int steps) const {
    Options mine = options;
    mine.run = name;
    Engine engine(single_process(), mine);
    for (int step = 1; step <= steps; ++step) commit_value(engine, "step-" + std::to_string(step), step);
    engine.finalize();
  }

  const std::string directory = ::testing::TempDir() + "kedge-events-" + std::to_string(::getpid());
  Options options;
};

TEST_F(RealEvents, TwoEnginesInOneProcessCutNoLine) {
  std::thread other([&] { run("one", 50); });
  run("two", 50);
  other.join();
  EXPECT_EQ(events_in(text("events-one-")).size(), events_in(text("events-two-")).size());
  options.events.path = directory + "/shared-{node}.jsonl";
  std::thread third([&] { run("three", 50); });
  run("four", 50);
  third.join();
  std::size_t of_three = 0;
  for (const Json& event : events_in(text("shared-"))) of_three += event["run"] == "three" ? 1U : 0U;
  EXPECT_EQ(of_three, events_in(text("events-one-")).size());
}

TEST_F(RealEvents, AKillLeavesWholeLines) {
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t before = text("events-killed-").size();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      while (true) run("killed", 20);
    }
    for (int waits = 0; waits < 30'000 && text("events-killed-").size() < before + 2000; ++waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(700 * turn));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  EXPECT_GT(events_in(text("events-killed-")).size(), 100U);
}

TEST_F(RealEvents, APipeOrALinkIsRefusedAndHoldsNobodyUp) {
  options.events.path = directory + "/there-{node}";
  const SimulatedNodes nodes(1);
  std::vector<std::string> lines;
  options.log.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  ASSERT_EQ(::mkfifo((directory + "/there-node0").c_str(), 0600), 0);
  run("pipe", 1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(says(lines[0], {"event logging is off", "there-node0"})) << lines[0];
  std::filesystem::remove(directory + "/there-node0");
  std::filesystem::create_symlink(directory + "/elsewhere", directory + "/there-node0");
  run("link", 1);
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(directory + "/elsewhere"));
}

}  // namespace
}  // namespace kedge::faults::events_test
