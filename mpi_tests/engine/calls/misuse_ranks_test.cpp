// Ranks that do not do the same, in calls, arguments or options: found at the call, the same error on all, the first
// failure of the lowest rank, and none waits for longer than its time.
#include <gmock/gmock.h>

#include <cerrno>
#include <thread>

#include "harness/engine_checks.hpp"

namespace kedge::faults::misuse_ranks_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Misuse, DifferentCallsAreBadStateOnAllRanks) {
  SimulatedJob job(4);
  OnEachRank in_idle(4);
  OnEachRank in_writing(4);
  OnEachRank in_reading(4);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    in_idle.put(scope.rank, failure_of([&] {
                  if (scope.rank == 0) engine.create("a");
                  else (void)engine.open();
                }));
    engine.create("a");
    in_writing.put(scope.rank, failure_of([&] {
                     if (scope.rank == 3) engine.abandon();
                     else engine.commit();
                   }));
    engine.commit();  // nothing was lost by the confusion
    EXPECT_EQ(engine.open(), "a");
    in_reading.put(scope.rank, failure_of([&] {
                     if (scope.rank == 1) engine.finalize();
                     else if (scope.rank == 2) (void)engine.need_checkpoint();
                     else engine.close();
                   }));
    engine.close();
    commit_value(engine, "b", 1);
    EXPECT_EQ(restore_value(engine).first, "b");
  }));
  EXPECT_EQ(in_idle.same()->code, ErrorCode::bad_state);
  EXPECT_THAT(in_idle.same()->message, AllOf(HasSubstr("create"), HasSubstr("open"), HasSubstr("rank 0")));
  EXPECT_EQ(in_writing.same()->code, ErrorCode::bad_state);
  EXPECT_THAT(in_writing.same()->message, AllOf(HasSubstr("commit"), HasSubstr("abandon"), HasSubstr("rank 3")));
  EXPECT_EQ(in_reading.same()->code, ErrorCode::bad_state);
}

TEST(Misuse, DifferentArgumentsAreBadStateOnAllRanks) {
  SimulatedJob job(3);
  std::vector<OnEachRank> met(13, OnEachRank(3));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 1);
    const bool odd = scope.rank == 1;
    met[0].put(scope.rank, failure_of([&] { engine.create("step-" + std::to_string(scope.rank)); }));
    met[1].put(scope.rank, failure_of([&] { (void)engine.open(odd ? Selection(latest) : Selection("a")); }));
    met[2].put(scope.rank, failure_of([&] { (void)engine.open(Tag(odd ? "a" : "b")); }));
    met[3].put(scope.rank, failure_of([&] { (void)engine.open(Before{odd ? "a" : "b"}); }));
    met[4].put(scope.rank, failure_of([&] { (void)engine.open(odd ? Selection(Before{"a"}) : Selection("a")); }));
    met[5].put(scope.rank, failure_of([&] { (void)engine.open(latest, odd ? Newer::discard : Newer::keep); }));
    met[6].put(scope.rank, failure_of([&] { engine.wait(odd ? "a" : "b", Level::local); }));
    met[7].put(scope.rank, failure_of([&] { engine.wait("a", odd ? Level::local : Level::snapshot); }));
    met[8].put(scope.rank, failure_of([&] { engine.pin(odd ? "a" : "b"); }));
    met[9].put(scope.rank, failure_of([&] {
                 if (odd) engine.pin("a");
                 else engine.unpin("a");
               }));
    const Source source{"/prefix", "test", "a"};
    const std::vector<Source> others{{"/prefi", "test", "a"}, {"/prefix", "tes", "a"}, {"/prefix", "test", "b"}};
    for (std::size_t i = 0; i < others.size(); ++i) {
      met[10 + i].put(scope.rank, failure_of([&] { (void)engine.open(odd ? others[i] : source); }));
    }
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("a"), 1));
  }));
  for (const auto& each : met) {
    ASSERT_TRUE(each.same());
    EXPECT_EQ(each.same()->code, ErrorCode::bad_state);
    EXPECT_THAT(each.same()->message, HasSubstr("gave different arguments to"));
  }
}

TEST(Misuse, ARankThatMakesNoCallIsATimeoutThatNamesIt) {
  SimulatedJob job(3);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (scope.rank == 2) return;
    const auto failure = failure_of([&] { engine.create("a"); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::timeout);
    EXPECT_THAT(failure->message, HasSubstr("rank "));
  }));
}

TEST(Misuse, RanksMaySaveOtherRegionsOrNone) {
  SimulatedJob job(4);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (int round = 0; round < 3; ++round) {
      const std::vector<double> mine(static_cast<std::size_t>(scope.rank) * 1000, scope.rank + round);
      const std::string name = "of-rank-" + std::to_string(scope.rank);
      engine.create("step-" + std::to_string(round));
      if (scope.rank != 1) {
        EXPECT_TRUE(engine.save(name, region(std::span(mine))).ok());
      }
      engine.commit();
      EXPECT_EQ(engine.open(), "step-" + std::to_string(round));
      EXPECT_EQ(engine.regions().size(), scope.rank == 1 ? 0U : 1U);
      std::vector<double> loaded(mine.size());
      if (scope.rank != 1) {
        EXPECT_TRUE(engine.load(name, mutable_region(std::span(loaded))).ok());
      }
      if (scope.rank != 1) {
        EXPECT_EQ(loaded, mine);
      }
      engine.close();
    }
  }));
}

TEST(Misuse, TheFirstFailureOfTheLowestRankIsThrown) {
  SimulatedJob job(4);
  OnEachRank thrown(4);
  std::optional<Failure> returned;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    if (scope.rank == 3) (void)engine.save("..", {});
    if (scope.rank == 2) {
      returned = engine.save("null", {nullptr, DataType::float64, {5}}).failure();
      EXPECT_FALSE(engine.save("/", {}).ok());
    }
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
  }));
  ASSERT_TRUE(thrown.same());
  EXPECT_EQ(thrown.same()->rank, 2);
  EXPECT_EQ(text_of(thrown.same()), text_of(returned));
}

TEST(Misuse, OptionsThatDifferNameTheFieldAndTwoRanks) {
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> fields = {
      {"run", [](Options& o) { o.run = "other"; }},
      {"store.keep", [](Options& o) { o.store.keep = 2; }},
      {"store.quota_bytes", [](Options& o) { o.store.quota_bytes = 1 << 20; }},
      {"store.lock_timeout_s", [](Options& o) { o.store.lock_timeout_s = 1; }},
      {"store.on_exit", [](Options& o) { o.store.on_exit = OnExit::remove; }},
      {"persistent.path", [](Options& o) { o.persistent.path = "/elsewhere"; }},
      {"open.verify", [](Options& o) { o.open.verify = Verify::headers; }},
      {"schedule.every", [](Options& o) { o.schedule.every = 5; }},
      {"comm.timeout_s", [](Options& o) { o.comm.timeout_s = 1; }},
  };
  SimulatedJob job(3);
  for (const auto& [name, change] : fields) {
    SCOPED_TRACE(name);
    OnEachRank thrown(3);
    const auto options = [&, &change = change](int rank) {
      Options mine = job.options;
      if (rank == 1) change(mine);
      return mine;
    };
    expect_returned(start_each(job, options, [&](int rank, const auto& make_engine) {
      thrown.put(rank, failure_of([&] { (void)make_engine(); }));
    }));
    ASSERT_TRUE(thrown.same());
    EXPECT_EQ(thrown.same()->code, ErrorCode::invalid_argument);
    EXPECT_THAT(thrown.same()->message, AllOf(HasSubstr("option " + name + " "), HasSubstr("ranks 0 and 1")));
  }
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 1);
  }));
}

TEST(Misuse, StorePathAndLogMayDifferBetweenRanks) {
  SimulatedJob job(2);
  for (const char* directory : {"/nodes/a", "/nodes/b"}) job.disk.make_directories(directory, 0755);
  const auto options = [&](int rank) {
    Options mine = job.options;
    mine.store.path = rank == 0 ? "/nodes/a" : "/nodes/b";
    mine.log.level = rank == 0 ? LogLevel::debug : LogLevel::off;
    return mine;
  };
  expect_returned(start_each(job, options, [&](int, const auto& make_engine) {
    Engine engine = make_engine();
    commit_value(engine, "a", 1);
    EXPECT_EQ(restore_value(engine).first, "a");
  }));
}

TEST(Misuse, BadOptionsOnOneRankAreThrownOnAll) {
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> wrongs = {
      {"comm.timeout_s", [](Options& o) { o.comm.timeout_s = -1; }},
      {"store.keep", [](Options& o) { o.store.keep = 0; }},
      {"run", [](Options& o) { o.run = "../up"; }},
      {"persistent.path", [](Options& o) { o.persistent.path.clear(); }},
      {"kedge.toml",
       [](Options& o) {
         o.load_failure = Failure{ErrorCode::invalid_argument, "bad line", -1, "kedge.toml", 0};
       }},
  };
  SimulatedJob job(3);
  for (const auto& [name, change] : wrongs) {
    SCOPED_TRACE(name);
    OnEachRank thrown(3);
    const auto options = [&, &change = change](int rank) {
      Options mine = job.options;
      if (rank == 2) change(mine);
      return mine;
    };
    expect_returned(start_each(job, options, [&](int rank, const auto& make_engine) {
      thrown.put(rank, failure_of([&] { (void)make_engine(); }));
    }));
    ASSERT_TRUE(thrown.same());
    EXPECT_EQ(thrown.same()->code, ErrorCode::invalid_argument);
    EXPECT_EQ(thrown.same()->rank, 2);
    EXPECT_THAT(text_of(thrown.same()), HasSubstr(name));
  }
}

TEST(Misuse, AbandonLosesNoEarlierCommit) {
  SimulatedJob job(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 1);
    for (int round = 0; round < 5; ++round) {
      const std::vector<double> large(100'000, round);
      engine.create("b");
      EXPECT_TRUE(engine.save("large", region(std::span(large))).ok());
      engine.abandon();
      EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("a"), 1));
    }
    scope.communicator.barrier(Deadline::never());
    EXPECT_LE(container_files(job.disk, scope.rank).size(), 2U);
    EXPECT_LT(job.disk.used_bytes("/nodes"), 400'000U) << "the space of what was abandoned is free";
    commit_value(engine, "b", 2);
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("b"), 2));
  }));
}

TEST(Misuse, ARetirementThatFailsOnOneRankCostsNothingAndIsTriedAgain) {
  for (const bool opened_first : {true, false}) {
    SimulatedJob job(2);
    job.options.store.keep = 4;
    expect_returned(job.start([](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (std::int32_t i = 0; i < 5; ++i) commit_value(engine, "step-" + std::to_string(i), i);
    }));
    job.options.store.keep = 1;
    OnEachRank thrown(2);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (scope.rank == 1) job.disk.fail_sometimes(1, 1, EIO, 7);
      thrown.put(scope.rank, failure_of([&] {
                   if (opened_first) {
                     (void)engine.open();
                   } else {
                     engine.create("next");
                   }
                 }));
      if (scope.rank == 1) job.disk.fail_sometimes(1, 0, EIO, 7);
      EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("step-4"), 4));
      commit_value(engine, "next", 5);
      EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("next"), 5));
      EXPECT_EQ(container_files(job.disk, scope.rank).size(), 2U);
    }));
    ASSERT_TRUE(thrown.same());
    EXPECT_EQ(thrown.same()->code, ErrorCode::io);
    EXPECT_EQ(thrown.same()->rank, 1);
    EXPECT_EQ(job.logged("could not be retired"), !opened_first) << "create came as far as that";
  }
}

TEST(Misuse, TwoEnginesOverTwoGroupsWithTwoRunNames) {
  SimulatedJob job(2);
  testing::InProcessWorld left(2);
  testing::InProcessWorld right(2);
  const auto run = [&](testing::InProcessWorld& world, const std::string& name, int first_process, std::int32_t value) {
    expect_returned(world.run([&](int rank) {
      engine::EngineEnvironment environment;
      environment.file_system = job.disk.view(first_process + rank);
      environment.clock = std::make_shared<FakeClock>();
      Options options = job.options;
      options.run = name;
      Engine engine = engine::EngineEnvironment::make_engine(world.communicator(rank), options, environment);
      for (std::int32_t round = 0; round < 10; ++round) {
        commit_value(engine, "same-tag", value + round);
        EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("same-tag"), value + round));
      }
    }));
  };
  std::thread other([&] { run(right, "right", 2, 1000); });
  run(left, "left", 0, 2000);
  other.join();
}

}  // namespace
}  // namespace kedge::faults::misuse_ranks_test
