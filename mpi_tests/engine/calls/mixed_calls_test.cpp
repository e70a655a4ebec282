// Ranks that make different calls, each pair in each phase, inline and in the background: those that are made of each
// other go together, also after damage, all others are one error on all.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults::mixed_calls_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 3;

struct NamedCall {
  std::string name;
  std::function<void(Engine&)> make;
};

const std::vector<NamedCall>& calls() {
  static double x = 0;
  static const State state = State().add("value", x);
  static const std::vector<NamedCall> all{
      {"need_checkpoint", [](Engine& engine) { (void)engine.need_checkpoint(); }},
      {"should_exit", [](Engine& engine) { (void)engine.should_exit(); }},
      {"create", [](Engine& engine) { engine.create("a"); }},
      {"create", [](Engine& engine) { engine.checkpoint("a", state); }},
      {"commit", [](Engine& engine) { engine.commit(); }},
      {"abandon", [](Engine& engine) { engine.abandon(); }},
      {"open", [](Engine& engine) { (void)engine.open(); }},
      {"open", [](Engine& engine) { (void)engine.restore(state); }},
      {"open", [](Engine& engine) { (void)engine.open("a", Newer::discard); }},
      {"close", [](Engine& engine) { engine.close(); }},
      {"wait", [](Engine& engine) { engine.wait("a", Level::local); }},
      {"wait_for", [](Engine& engine) { (void)engine.wait_for("a", Level::local, std::chrono::seconds(1)); }},
      {"pin", [](Engine& engine) { engine.unpin("a"); }},
      {"finalize", [](Engine& engine) { engine.finalize(); }},
      {"finalize(at_most)", [](Engine& engine) { (void)engine.finalize_for(std::chrono::seconds(1)); }},
  };
  return all;
}

enum class In { idle, writing, reading };

/// Every pair of calls, each as rank 1's and as that of the others; then the engine works on.
void expect_each_pair_refused(In phase, PipelineMode mode) {
  SimulatedJob job(kRanks);
  job.options.pipeline.mode = mode;
  job.options.persistent.every = 1;
  std::vector<std::pair<const NamedCall*, const NamedCall*>> pairs;
  for (const NamedCall& others : calls()) {
    for (const NamedCall& mine : calls()) {
      if (others.name != mine.name) pairs.emplace_back(&others, &mine);
    }
  }
  std::vector<OnEachRank> met(pairs.size(), OnEachRank(kRanks));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 7);
    if (phase == In::writing) engine.create("b");
    if (phase == In::reading) {
      EXPECT_EQ(engine.open(), "a");
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const NamedCall& call = scope.rank == 1 ? *pairs[i].second : *pairs[i].first;
      met[i].put(scope.rank, failure_of([&] { call.make(engine); }));
    }
    if (phase == In::writing) engine.commit();
    if (phase == In::reading) engine.close();
    commit_value(engine, "c", 9);
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("c"), 9));
    engine.finalize();
  }));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto failure = met[i].same();
    ASSERT_TRUE(failure) << pairs[i].first->name << ", " << pairs[i].second->name;
    EXPECT_EQ(failure->code, ErrorCode::bad_state);
    EXPECT_THAT(failure->message, AllOf(HasSubstr("rank 1"), HasSubstr("in " + pairs[i].first->name),
                                        HasSubstr("in " + pairs[i].second->name)));
  }
}

TEST(MixedCalls, EachPairOfDifferentOnesIsBadStateOnAllRanks) {
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    for (const In phase : {In::idle, In::writing, In::reading}) {
      SCOPED_TRACE(testing::Message() << "phase " << static_cast<int>(phase) << ", mode " << static_cast<int>(mode));
      expect_each_pair_refused(phase, mode);
    }
  }
}

/// The variables of one rank, saved and loaded as a State, or one by one as programs in other languages do.
struct Variables {
  std::int32_t step = 0;
  std::vector<double> x;
  double unread = 1;
  State state() { return State().add("step", step).add("x", x).add("unread", unread); }

  void save(Engine& engine, std::string_view tag, bool by_state) {
    if (by_state) return engine.checkpoint(tag, state());
    engine.create(tag);
    (void)engine.save("step", {&step, DataType::int32, {}});
    (void)engine.save("x", {x.data(), DataType::float64, {x.size()}});
    (void)engine.save("unread", {&unread, DataType::float64, {}});
    engine.commit();
  }
  std::optional<Tag> load(Engine& engine, bool by_state) {
    if (by_state) return engine.restore(State().add("step", step).add("x", x));
    while (true) {
      const auto tag = engine.open();
      if (!tag) return tag;
      for (const RegionInfo& region : engine.regions()) {
        if (region.name == "x") x.resize(region.shape.extents()[0]);
      }
      (void)engine.load("step", {&step, DataType::int32, {}});
      (void)engine.load("x", {x.data(), DataType::float64, {x.size()}});
      const auto code = code_of([&] { engine.close(); });
      if (!code) return tag;
      if (code != ErrorCode::corrupt) throw Error(*code, "close");
    }
  }
};

TEST(MixedCalls, AStateOnSomeRanksAndSingleVariablesOnOthersGoTogether) {
  for (const PipelineMode mode : {PipelineMode::inline_, PipelineMode::background}) {
    SimulatedJob job(4);
    job.options.pipeline.mode = mode;
    job.options.persistent.every = 2;
    job.options.open.verify = Verify::headers;  // damage shows while it is loaded
    for (int start = 0; start < 3; ++start) {
      expect_returned(job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        const bool by_state = (scope.rank + start) % 2 == 0;
        Variables mine;
        const auto tag = mine.load(engine, by_state);
        EXPECT_EQ(tag.has_value(), start > 0);
        if (tag) {
          EXPECT_EQ(mine.step, start * 10 + 2 - 10);
          EXPECT_EQ(mine.x, std::vector<double>(static_cast<std::size_t>(5 + scope.rank), mine.step + scope.rank));
        }
        for (int turn = 1; turn <= 2; ++turn) {
          mine.step = start * 10 + turn;
          mine.x.assign(static_cast<std::size_t>(5 + scope.rank), mine.step + scope.rank);
          mine.save(engine, "step-" + std::to_string(mine.step), by_state == (turn == 1));
        }
        Variables again;
        EXPECT_EQ(again.load(engine, !by_state), "step-" + std::to_string(mine.step));
        EXPECT_EQ(again.x, mine.x);
        engine.finalize();
      }));
    }
    EXPECT_TRUE(job.logged("has regions that this program's State does not have: unread"));
  }
}

}  // namespace
}  // namespace kedge::faults::mixed_calls_test
