// How kedge-bench judges its rows: which ratios pass, which miss, and when a machine is too noisy to say; a row that
// was not measured is an error.
#include "judge.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace kedge_bench::judge_test {
namespace {

using Values = std::vector<double>;

constexpr Kind kXor{"xor", 1, 4, Messages::shared_memory};
constexpr Kind kReedSolomon{"rs", 2, 4, Messages::shared_memory};

Values times(double factor, Values values) {
  for (double& value : values) value *= factor;
  return values;
}

const Values kQuiet{1.00, 1.02, 0.98, 1.01, 0.99, 1.00, 1.03};
const Values kNoisy{1.00, 1.02, 0.90, 1.01, 0.99, 1.00, 1.06};

/// Made-up series: W, and protect in so many W.
Table table(const Values& write, double protect) {
  Table made;
  made.add({"write", "W", "", 0, Unit::seconds, write});
  made.add({"protect", "protect", "write", 0, Unit::seconds, times(protect, write)});
  return made;
}

int check(const Table& made, const Kind& kind = kXor, bool on_disk = true) {
  return exit_code(judge(made, kind, on_disk));
}

TEST(Judge, ExitsWith0IfAllRowsWereJudgedAndPassed) {
  EXPECT_EQ(check(table(kQuiet, 0.5)), 0);
  EXPECT_EQ(check(table(kQuiet, 0.9)), 0) << "the target itself is good enough";
}

TEST(Judge, ExitsWith1IfARowMisses) {
  EXPECT_EQ(check(table(kQuiet, 0.91)), 1);
  EXPECT_EQ(check(table(kQuiet, 2 * 0.5)), 1) << "a stage that takes twice as long";
}

TEST(Judge, ExitsWith2IfTheBaseSpreadsTooMuch) {
  EXPECT_EQ(check(table(kNoisy, 0.5)), 2);
  EXPECT_EQ(check(table(kNoisy, 0.95)), 2) << "in another run it could have been 0.9";
}

TEST(Judge, NoiseDoesNotExcuseWhatNoPairingReaches) { EXPECT_EQ(check(table(kNoisy, 1.2)), 1); }

TEST(Judge, ExitsWith2IfThereWereTooFewRounds) {
  EXPECT_EQ(check(table(Values(kLeastRounds - 1, 1.0), 0.5)), 2);
  EXPECT_EQ(check(table(Values(kLeastRounds, 1.0), 0.5)), 0);
  EXPECT_EQ(check(table({1.0, 1.0}, 5)), 1);
}

TEST(Judge, ExitsWith2IfNothingWasJudged) {
  EXPECT_EQ(check(table(kQuiet, 0.5), {"partner", 1, 2}), 2);
  EXPECT_EQ(exit_code({}), 2);
}

TEST(Judge, AMissWeighsMoreThanNoise) {
  Table made = table(kQuiet, 2);
  made.add({"read", "read", "", 0, Unit::seconds, kNoisy});
  made.add({"open_load", "load", "read", 0, Unit::seconds, kNoisy});
  EXPECT_EQ(check(made), 1);
  EXPECT_EQ(judge(made, kXor, true).back().verdict, Verdict::too_noisy);
}

TEST(Judge, OneNoisyBaseIsNoPassThoughTheOthersAreQuiet) {
  Table made = table(kQuiet, 0.5);
  made.add({"read", "read", "", 0, Unit::seconds, kNoisy});
  made.add({"open_load", "load", "read", 0, Unit::seconds, times(0.5, kNoisy)});
  EXPECT_EQ(check(made), 2);
}

TEST(Judge, TargetsAreThoseOfTheRedundancyThatWasMeasured) {
  EXPECT_EQ(check(table(kQuiet, 1.5), kXor), 1);
  EXPECT_EQ(check(table(kQuiet, 1.5), kReedSolomon), 0);
  EXPECT_EQ(check(table(kQuiet, 2.0), kReedSolomon), 1);
  EXPECT_EQ(target_of("protect", {"rs", 3, 4, Messages::shared_memory}), nullptr);
  EXPECT_EQ(target_of("protect", {"rs", 2, 8, Messages::shared_memory}), nullptr);
  EXPECT_EQ(target_of("rebuild", kReedSolomon)->at_most, 3.0);
}

TEST(Judge, TheRoundThatIsMeasuredAgainIsTheSlowestOfANoisyBase) {
  EXPECT_EQ(disturbed_round(table(kQuiet, 5), kXor), std::nullopt) << "what is judged itself does not matter";
  Table made = table({1.0, 1.0, 1.3, 0.8, 1.0, 1.0, 1.0}, 0.5);
  EXPECT_EQ(disturbed_round(made, kXor), 2U) << "never a fast one";
  EXPECT_EQ(disturbed_round(made, {"partner", 1, 2}), std::nullopt) << "nothing is judged against it";
  made.forget(2);
  EXPECT_EQ(made.find("write")->values, (Values{1.0, 1.0, 0.8, 1.0, 1.0, 1.0}));
  EXPECT_EQ(made.find("protect")->values.size(), 6U);
}

TEST(Judge, OverANetworkProtectIsHeldAgainstAnExchangeAndNotAgainstWrites) {
  EXPECT_EQ(target_of("protect_exchange", kXor), nullptr);
  EXPECT_EQ(target_of("protect", kXor)->at_most, 0.9);
  EXPECT_EQ(target_of("protect_exchange", {"rs", 2, 4, Messages::network})->at_most, 1.2);
  EXPECT_EQ(target_of("protect", {"rs", 2, 4, Messages::network}), nullptr);
  EXPECT_EQ(target_of("open_load", {"rs", 2, 4, Messages::network})->at_most, 1.0);
}

TEST(Judge, RatiosAreTakenWithinARound) {
  Table made;
  made.add({"write", "W", "", 0, Unit::seconds, {1, 1, 1, 1, 1.1, 1.1, 1.1}});
  made.add({"protect", "protect", "write", 0, Unit::seconds, {0.5, 0.5, 0.5, 5, 1.1, 1.1, 1.1}});
  EXPECT_DOUBLE_EQ(judge(made, kXor, true).back().ratio->median, 1.0);
}

TEST(Judge, MemoryIsJudgedWithoutABase) {
  Table made;
  made.add({"memory", "memory", "", 0, Unit::mebibytes, {31.5}});
  EXPECT_EQ(check(made), 0);
  made.clear();
  made.record("memory", 32.5);
  EXPECT_EQ(check(made), 1);
}

TEST(Judge, BytesThatAreReadAreJudgedWithoutABaseAndInAnyNumberOfRounds) {
  Table made;
  made.add({"restore_reads", "reads", "", 0, Unit::bytes_per_byte, {1.001, 1.001}});
  EXPECT_EQ(check(made), 0);
  made.clear();
  made.record("restore_reads", 2.001);
  EXPECT_EQ(check(made), 1) << "as open and load read them";
}

TEST(Judge, MemoryAgainstMemoryNeedsNoRounds) {
  Table made;
  made.add({"held", "held", "", 0, Unit::mebibytes, {40}});
  made.add({"held_later", "held later", "held", 0, Unit::mebibytes, {40.3}});
  EXPECT_EQ(check(made), 0);
  made.clear();
  EXPECT_EQ(disturbed_round(made, kXor), std::nullopt) << "it comes after the rounds";
  made.record("held", 40);
  made.record("held_later", 40.5);
  EXPECT_EQ(check(made), 1);
}

TEST(Judge, WritesToAMemoryFilesystemAreNoDisk) {
  Table made;
  made.add({"disk_write", "D", "", 0, Unit::seconds, kQuiet});
  made.add({"flush", "flush", "disk_write", 0, Unit::seconds, kQuiet});
  EXPECT_EQ(check(made, kXor, false), 2);
  EXPECT_EQ(check(made, kXor, true), 0);
}

TEST(Judge, ARowThatWasNotMeasuredIsAnErrorAndNoPass) {
  Table made = table(kQuiet, 0.5);
  made.clear();
  EXPECT_THROW((void)judge(made, kXor, true), std::invalid_argument);
}

TEST(Judge, ATargetIsNotHeldAgainstAnotherRowThanItsOwn) {
  Table made = table(kQuiet, 0.5);
  made.add({"open_load", "load", "write", 0, Unit::seconds, kQuiet});
  EXPECT_THROW((void)judge(made, kXor, true), std::invalid_argument);
}

}  // namespace
}  // namespace kedge_bench::judge_test
