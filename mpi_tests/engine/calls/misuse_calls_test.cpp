// Every call in every state of the engine: the documented outcome, the same on all ranks, and it goes on; a dead engine
// refuses every call and says why; its destructor communicates with nobody.
#include <gmock/gmock.h>

#include <array>

#include "harness/engine_checks.hpp"

namespace kedge::faults::misuse_calls_test {
namespace {

enum Given : std::size_t { idle, writing, reading, finalized, dead, kStates };
constexpr std::array<const char*, kStates> kNames = {"idle", "writing", "reading", "finalized", "dead"};
constexpr auto ok = std::optional<ErrorCode>{};
constexpr auto bad = std::optional(ErrorCode::bad_state);
constexpr auto none = std::optional(ErrorCode::not_found);

struct Call {
  const char* name;
  std::function<std::optional<ErrorCode>(Engine&)> make;
  std::array<std::optional<ErrorCode>, kStates> expected;  // in idle, writing, reading, finalized, dead
};

std::int32_t number = 7;  // NOLINT: memory that calls may point to

std::vector<Call> calls() {
  const auto thrown = [](auto body) { return [body](Engine& engine) { return code_of([&] { body(engine); }); }; };
  return {
      {"need_checkpoint", thrown([](Engine& e) { (void)e.need_checkpoint(); }), {ok, ok, ok, bad, bad}},
      {"should_exit", thrown([](Engine& e) { EXPECT_FALSE(e.should_exit()); }), {ok, ok, ok, bad, bad}},
      {"create", thrown([](Engine& e) { e.create("next"); }), {ok, bad, bad, bad, bad}},
      {"save",
       [](Engine& e) {
         return code_of_status(e.save("value", {&number, DataType::int32, {}}));
       },
       {bad, ok, bad, bad, bad}},
      {"route_out",
       [](Engine& e) { return code_of_status(e.route_out("other", 10).status); },
       {bad, ok, bad, bad, bad}},
      {"commit", thrown([](Engine& e) { e.commit(); }), {bad, ok, bad, bad, bad}},
      {"abandon", thrown([](Engine& e) { e.abandon(); }), {bad, ok, bad, bad, bad}},
      {"level", thrown([](Engine& e) { EXPECT_GE(e.level("first"), Level::local); }), {ok, ok, ok, ok, ok}},
      {"open", thrown([](Engine& e) { EXPECT_EQ(e.open(latest), "first"); }), {ok, bad, bad, bad, bad}},
      {"regions", thrown([](Engine& e) { EXPECT_EQ(e.regions().size(), 2U); }), {bad, bad, ok, bad, bad}},
      {"info", thrown([](Engine& e) { EXPECT_EQ(e.info().tag, "first"); }), {bad, bad, ok, bad, bad}},
      {"load",
       [](Engine& e) {
         std::int32_t value = 0;
         return code_of_status(e.load("value", {&value, DataType::int32, {}}));
       },
       {bad, bad, ok, bad, bad}},
      {"route_in", [](Engine& e) { return code_of_status(e.route_in("file").status); }, {bad, bad, ok, bad, bad}},
      {"close", thrown([](Engine& e) { e.close(); }), {bad, bad, ok, bad, bad}},
      {"wait", thrown([](Engine& e) { e.wait("first", Level::local); }), {ok, bad, ok, bad, bad}},
      {"pin", thrown([](Engine& e) { e.pin("first"); }), {none, bad, none, bad, bad}},
      {"unpin", thrown([](Engine& e) { e.unpin("first"); }), {none, bad, none, bad, bad}},
      {"checkpoint", thrown([](Engine& e) { commit_value(e, "next", 8); }), {ok, bad, bad, bad, bad}},
      {"restore", thrown([](Engine& e) { EXPECT_EQ(restore_value(e).second, 7); }), {ok, bad, bad, bad, bad}},
      {"finalize", thrown([](Engine& e) { e.finalize(); }), {ok, ok, ok, bad, bad}},
  };
}

void commit_first(SimulatedJob& job, Engine& engine) {
  engine.create("first");
  EXPECT_TRUE(engine.save("value", {&number, DataType::int32, {}}).ok());
  const Routed file = engine.route_out("file", 100);
  EXPECT_TRUE(file.status.ok());
  job.disk.write_all(file.path, std::as_bytes(std::span("content")));
  engine.commit();
}

/// False on the rank that is not there any more when the others die of its silence.
bool bring_into(Engine& engine, Given given, const RankScope& scope) {
  if (given == writing) engine.create("begun");
  if (given == reading) {
    EXPECT_EQ(engine.open(latest), "first");
  }
  if (given == finalized) engine.finalize();
  if (given != dead) return true;
  if (scope.rank + 1 == scope.ranks) return false;
  EXPECT_EQ(code_of([&] { (void)engine.need_checkpoint(); }), ErrorCode::timeout);
  return true;
}

/// Whatever state the engine is in, its next checkpoint works.
void expect_it_goes_on(Engine& engine) {
  if (code_of([&] { engine.abandon(); })) (void)code_of([&] { engine.close(); });
  commit_value(engine, "after", 99);
  EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("after"), 99));
}

void expect_outcome(const Call& call, Given given, int ranks) {
  SCOPED_TRACE(std::string(call.name) + " while " + kNames.at(given) + " on " + std::to_string(ranks) + " ranks");
  SimulatedJob job(ranks);
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_first(job, engine);
    if (!bring_into(engine, given, scope)) return;
    const auto code = call.make(engine);
    EXPECT_EQ(code, call.expected.at(given)) << (code ? to_string(*code) : "success");
    if (given < finalized && std::string_view(call.name) != "finalize") expect_it_goes_on(engine);
  });
  expect_returned(outcomes);
}

class Misuse : public testing::TestWithParam<int> {};

TEST_P(Misuse, EveryCallInEveryStateHasItsOutcome) {
  for (const Call& call : calls()) {
    for (const Given given : {idle, writing, reading, finalized, dead}) {
      if (given == dead && GetParam() == 1) continue;  // nobody to wait for
      expect_outcome(call, given, GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Misuse, testing::Values(1, 2, 3, 4));

TEST(Misuse, BadStateSaysWhatToDo) {
  SimulatedJob job(2);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_THAT(text_of(failure_of([&] { engine.commit(); })), testing::HasSubstr("commit was called out of order"));
    EXPECT_THAT(to_string(engine.save("a", {}).failure()), testing::HasSubstr("call create first"));
    engine.create("a");
    EXPECT_THAT(text_of(failure_of([&] { (void)engine.open(); })), testing::HasSubstr("commit or abandon it first"));
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    EXPECT_THAT(text_of(failure_of([&] { engine.create("b"); })), testing::HasSubstr("close it first"));
    engine.finalize();
    EXPECT_THAT(text_of(failure_of([&] { engine.create("b"); })), testing::HasSubstr("finalized"));
    EXPECT_THAT(to_string(engine.save("a", {}).failure()), testing::HasSubstr("finalized"));
    EXPECT_THAT(to_string(engine.load("a", {}).failure()), testing::HasSubstr("finalized"));
  }));
}

TEST(Misuse, ADeadEngineSaysWhyOnEveryCall) {
  SimulatedJob job(3);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("a");
    if (scope.rank == 1) return;  // its silence is what the others die of
    const auto timeout = failure_of([&] { engine.commit(); });
    ASSERT_TRUE(timeout);
    EXPECT_EQ(timeout->code, ErrorCode::timeout);
    EXPECT_THAT(text_of(failure_of([&] { engine.abandon(); })), testing::HasSubstr("dead"));
    EXPECT_THAT(to_string(engine.save("a", {}).failure()), testing::HasSubstr("dead"));
    EXPECT_THAT(to_string(engine.route_out("a", 1).status.failure()), testing::HasSubstr("dead"));
    EXPECT_THAT(to_string(engine.load("a", {}).failure()), testing::HasSubstr("dead"));
    EXPECT_THAT(to_string(engine.route_in("a").status.failure()), testing::HasSubstr("dead"));
  }));
}

TEST(Misuse, TheDestructorCommunicatesWithNobodyAndTheNextStartFindsWhatWasCommitted) {
  for (const Given given : {idle, writing, reading}) {
    SimulatedJob job(3);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_first(job, engine);
      (void)bring_into(engine, given, scope);
      // Not all ranks leave at the same place: a destructor that waited for others would never end.
      if (scope.rank == 1) (void)code_of([&] { (void)engine.need_checkpoint(); });
    }));
    expect_returned(job.start([](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("first"), 7));
      engine.finalize();
    }));
  }
}

TEST(Misuse, FinalizeEndsWhatIsUnderWay) {
  for (const Given given : {writing, reading}) {
    SimulatedJob job(2);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_first(job, engine);
      (void)bring_into(engine, given, scope);
      engine.finalize();
    }));
    expect_returned(job.start([](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(restore_value(engine).first, "first");
    }));
  }
}

TEST(Misuse, TheLevelOfATagIsKnownWithoutCommunication) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.level("a"), Level::none);
    engine.create("a");
    EXPECT_EQ(engine.level("a"), Level::none);
    engine.commit();
    EXPECT_EQ(engine.level("a"), Level::local);
    engine.create("b");
    engine.abandon();
    EXPECT_EQ(engine.level("b"), Level::none);
    EXPECT_EQ(engine.level("a"), Level::local);
    EXPECT_EQ(engine.level("no tag at all / "), Level::none);
    engine.finalize();
    EXPECT_EQ(engine.level("a"), Level::local);
  }));
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open("a"), "a");
    EXPECT_EQ(engine.level("a"), Level::local);
  }));
}

}  // namespace
}  // namespace kedge::faults::misuse_calls_test
