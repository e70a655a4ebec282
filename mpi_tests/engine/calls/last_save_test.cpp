// When the last checkpoint of a job must begin, a snapshot ahead of it included, and to which level it can be taken:
// arithmetic alone.
#include "engine/job_end.hpp"

#include <gtest/gtest.h>

#include "base/recent_values.hpp"

namespace kedge::engine::last_save_test {
namespace {

constexpr double kMargin = 20;
const LastSave kToPrefix({Level::persistent, true, kMargin});
const LastSave kProtected({Level::protected_, true, kMargin});
const LastSave kLocal({Level::local, false, kMargin});

SaveCosts measured(double local_s, double protect_s, double flush_s) { return {local_s, {protect_s, flush_s, {}}}; }

TEST(LastSave, TakesWhatItsStagesTake) {
  const SaveCosts costs = measured(2, 3, 5);
  EXPECT_EQ(kToPrefix.estimate_s(Level::local, costs), 2);
  EXPECT_EQ(kToPrefix.estimate_s(Level::protected_, costs), 5);
  EXPECT_EQ(kToPrefix.estimate_s(Level::persistent, costs), 10);
  const LastSave unprotected({Level::persistent, false, kMargin});
  EXPECT_EQ(unprotected.estimate_s(Level::persistent, costs), 7);
}

TEST(LastSave, WaitsForWhatIsUnderWay) {
  SaveCosts costs = measured(2, 3, 5);
  costs.stages.pending_stages = {2, 1};
  EXPECT_EQ(kToPrefix.estimate_s(Level::persistent, costs), 10 + 2 * 3 + 5);
  EXPECT_EQ(kToPrefix.estimate_s(Level::protected_, costs), 5 + 2 * 3 + 5);
  EXPECT_EQ(kToPrefix.estimate_s(Level::local, costs), 2);
}

// It is sealed before the last one begins, whatever that is taken to.
TEST(LastSave, WaitsForASnapshot) {
  SaveCosts costs = measured(2, 3, 5);
  costs.stages.pending_stages = {1, 0, 1};
  EXPECT_EQ(kToPrefix.estimate_s(Level::local, costs), 2 + 2);
  EXPECT_EQ(kToPrefix.estimate_s(Level::protected_, costs), 2 + 2 + 3 + 3);
}

TEST(LastSave, AssumesWhatWasNotMeasured) {
  EXPECT_EQ(kToPrefix.estimate_s(Level::local, {}), LastSave::kLocalDefault_s);
  EXPECT_EQ(kToPrefix.estimate_s(Level::persistent, {}),
            LastSave::kLocalDefault_s + LastSave::kProtectDefault_s + LastSave::kFlushDefault_s);
  const SaveCosts partly{1, {2, {}, {}}};
  EXPECT_EQ(kToPrefix.estimate_s(Level::persistent, partly), 3 + LastSave::kFlushDefault_s);
  EXPECT_FALSE(kToPrefix.choose({}, partly).is_measured);
  EXPECT_TRUE(kProtected.choose({}, partly).is_measured);
  EXPECT_FALSE(kProtected.choose({}, {1, {}}).is_measured);
  EXPECT_FALSE(kLocal.choose({}, {{}, {2, 2, {}}}).is_measured);
}

/// 10 s and half as much again, the next pass likewise, and the margin.
TEST(LastSave, IsDueSoEarlyThatItIsDoneInTime) {
  const SaveCosts costs = measured(2, 3, 5);
  EXPECT_FALSE(kToPrefix.is_due(15 + kMargin + 0.1, 0, costs));
  EXPECT_TRUE(kToPrefix.is_due(15 + kMargin, 0, costs));
  EXPECT_TRUE(kToPrefix.is_due(-1000, 0, costs));
  EXPECT_FALSE(kProtected.is_due(15 + kMargin, 0, costs));
  EXPECT_TRUE(kProtected.is_due(7.5 + kMargin, 0, costs));
  EXPECT_FALSE(kLocal.is_due(3 + kMargin + 0.1, 0, costs));
  EXPECT_TRUE(kLocal.is_due(3 + kMargin, 0, costs));
}

TEST(LastSave, IsDueInThePassBeforeTheOneThatWouldBeTooLate) {
  const SaveCosts costs = measured(2, 3, 5);
  EXPECT_FALSE(kToPrefix.is_due(60 * 1.5 + 15 + kMargin + 0.1, 60, costs));
  EXPECT_TRUE(kToPrefix.is_due(60 * 1.5 + 15 + kMargin, 60, costs));
}

/// Whatever the lengths of passes, if each is at most half as long again as the one before.
TEST(LastSave, WhenItIsDueItStillFits) {
  for (const double pass_s : {0.0, 0.5, 7.0, 60.0}) {
    for (const double flush_s : {0.0, 1.0, 5.0, 300.0}) {
      const SaveCosts costs = measured(2, 3, flush_s);
      double left_s = 10'000.5;
      while (!kToPrefix.is_due(left_s, pass_s, costs)) left_s -= 1.5 * pass_s + 0.01;
      const LastSave::Choice choice = kToPrefix.choose(left_s, costs);
      EXPECT_EQ(choice.level, Level::persistent) << pass_s << ' ' << flush_s;
      EXPECT_TRUE(choice.fits);
    }
  }
}

TEST(LastSave, AnotherBeforeItMustLeaveTimeForIt) {
  const SaveCosts costs = measured(2, 3, 5);
  EXPECT_TRUE(kToPrefix.has_time_for_another_save(10 + 15 + kMargin + 0.1, 0, costs));
  EXPECT_FALSE(kToPrefix.has_time_for_another_save(10 + 15 + kMargin, 0, costs));
  EXPECT_FALSE(kToPrefix.has_time_for_another_save(10 + 90 + 15 + kMargin, 60, costs));
}

TEST(LastSave, GoesToTheHighestLevelThatFits) {
  const SaveCosts costs = measured(2, 3, 5);
  const auto level = [&](double left_s) { return kToPrefix.choose(left_s + kMargin, costs).level; };
  EXPECT_EQ(level(10), Level::persistent);
  EXPECT_EQ(level(9.9), Level::protected_);
  EXPECT_EQ(level(5), Level::protected_);
  EXPECT_EQ(level(4.9), Level::local);
  EXPECT_TRUE(kToPrefix.choose(2 + kMargin, costs).fits);
  EXPECT_EQ(level(1.9), Level::local);
  EXPECT_FALSE(kToPrefix.choose(1.9 + kMargin, costs).fits);
  EXPECT_EQ(level(-1e9), Level::local);
}

// As after a signal, with exit.grace_s below exit.margin_s.
TEST(LastSave, WhereLessThanTheMarginIsLeftHalfOfThatIsTheMargin) {
  const SaveCosts costs = measured(0.2, 0.3, 0.5);
  ASSERT_GT(kMargin, 2);
  EXPECT_EQ(kToPrefix.choose(2, costs).level, Level::persistent);
  EXPECT_EQ(kToPrefix.choose(1.9, costs).level, Level::protected_);
  EXPECT_EQ(kToPrefix.choose(0.9, costs).level, Level::local);
  EXPECT_TRUE(kToPrefix.choose(0.4, costs).fits);
  EXPECT_FALSE(kToPrefix.choose(0.3, costs).fits);
  EXPECT_FALSE(kToPrefix.choose(-1, costs).fits);
}

TEST(LastSave, GoesNoHigherThanTheRunDoes) {
  const SaveCosts costs = measured(2, 3, 5);
  EXPECT_EQ(kProtected.choose(1e6, costs).level, Level::protected_);
  EXPECT_EQ(kLocal.choose(1e6, costs).level, Level::local);
  const LastSave unprotected({Level::persistent, false, kMargin});
  EXPECT_EQ(unprotected.choose(kMargin + 6, costs).level, Level::local) << "nothing lies between";
}

TEST(LastSave, WithoutAnEndGoesToTheHighest) {
  const LastSave::Choice choice = kToPrefix.choose({}, measured(2, 3, 5e6));
  EXPECT_EQ(choice.level, Level::persistent);
  EXPECT_TRUE(choice.fits);
}

TEST(LastSave, SaysThatTheApplicationMakesItOfItsOwnAccord) {
  EXPECT_EQ(kToPrefix.describe(kToPrefix.choose(1000, measured(2, 3, 33)), LastSave::When::next),
            "should_exit is true, and the next checkpoint is the last, up to level persistent (estimated 38.00 s from "
            "recent ones)");
}

TEST(LastSave, SaysWhatItChoseAndWhy) {
  const SaveCosts costs = measured(2, 3, 33);
  EXPECT_EQ(kToPrefix.describe(kToPrefix.choose(1000, costs), LastSave::When::now),
            "taking the last checkpoint now, up to level persistent (estimated 38.00 s from recent ones)");
  EXPECT_EQ(kToPrefix.describe(kToPrefix.choose(30, costs), LastSave::When::now),
            "taking the last checkpoint now, up to level protected (estimated 5.00 s from recent ones; persistent "
            "would take 38.00 s)");
  EXPECT_EQ(kToPrefix.describe(kToPrefix.choose(1, costs), LastSave::When::now),
            "taking the last checkpoint now, up to level local (estimated 2.00 s from recent ones; persistent would "
            "take 38.00 s); this may not "
            "finish in time");
  EXPECT_EQ(kLocal.describe(kLocal.choose({}, {}), LastSave::When::now),
            "taking the last checkpoint now, up to level local (estimated 10.00 s, partly assumed, since "
            "this run has not measured it yet)");
}

TEST(RecentValues, IsTheLargestOfTheLastOnes) {
  RecentValues<3> recent;
  EXPECT_EQ(recent.largest(), std::nullopt);
  recent.add(-5);
  EXPECT_EQ(recent.largest(), -5);
  recent.add(7);
  recent.add(1);
  EXPECT_EQ(recent.largest(), 7);
  recent.add(2);
  EXPECT_EQ(recent.largest(), 7);
  recent.add(3);
  EXPECT_EQ(recent.largest(), 3) << "7 is forgotten";
}

}  // namespace
}  // namespace kedge::engine::last_save_test
