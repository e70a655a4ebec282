// open(Before{tag}) where no commit has that tag: an error that names the tag, and the way that the guide "from VeloC"
// gives to find the newest older step. A run that has a name is named beside its commits in the log.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::before_test {
namespace {

class BeforeTest : public FlushFixture {
 protected:
  BeforeTest() {
    job.options.store.keep = 3;
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      for (int step = 10; step <= 30; step += 10) {
        State state;
        state.add("step", step);
        engine.checkpoint(compose("step-{}", step), state, {{"step", std::int64_t{step}}});
      }
    }));
  }
  PersistentJob job{2};
};

TEST_F(BeforeTest, ATagThatWasNeverSavedIsNamedOnAllRanks) {
  for (const bool with_stores : {true, false}) {
    if (!with_stores) lose_stores(job, {0, 1});
    OnEachRank met(2);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      met.put(scope.rank, failure_of([&] { (void)engine.open(Before{"step-25"}); }));
      EXPECT_EQ(engine.open(Before{"step-30"}), "step-20") << "the engine goes on";
      engine.close();
      EXPECT_EQ(engine.open(Before{"step-10"}), std::nullopt) << "nothing is older, and that is known";
    }));
    const auto failure = met.same();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::not_found);
    EXPECT_TRUE(says(failure->message, {"step-25", "kedge ls"})) << failure->message;
  }
}

/// share/doc/from-veloc.md, "Older than a version".
TEST_F(BeforeTest, TheNewestBelowANumberIsFoundByWalkingBack) {
  for (const std::int64_t number : {25, 30, 35, 10}) {
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      auto tag = engine.open();
      while (tag && std::get<std::int64_t>(engine.info().attributes.at("step")) >= number) {
        engine.close();
        tag = engine.open(Before{*tag});
      }
      const std::int64_t older = number > 30 ? 30 : (number - 1) / 10 * 10;
      EXPECT_EQ(tag, older == 0 ? std::nullopt : std::optional<Tag>(compose("step-{}", older)));
    }));
  }
}

TEST_F(BeforeTest, ARunWithoutCommitsBeginsFromZero) {
  PersistentJob fresh(2);
  EXPECT_EQ(reopen(fresh, Before{"step-25"}).tag, std::nullopt);
  EXPECT_FALSE(reopen(fresh, Before{"step-25"}).failure);
}

/// Two runs in a launch or process are told apart by what the log says of their commits.
TEST_F(BeforeTest, ARunThatHasANameIsNamedBesideItsCommits) {
  for (const bool has_name : {true, false}) {
    PersistentJob one(2);
    one.options.run = has_name ? "ocean" : "main";
    one.options.log.level = LogLevel::info;
    commit_steps(one, {{"a", 1}});
    EXPECT_EQ(one.logged("committed a of run 'ocean' (generation "), has_name);
    EXPECT_EQ(one.logged("committed a (generation "), !has_name);
  }
}

}  // namespace
}  // namespace kedge::faults::before_test
