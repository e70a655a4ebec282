// Ranks whose States are not the same: what ranks may have of their own comes back byte for byte, and everything else
// is the same error on all of them.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults {

struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
inline std::string kedge_members(const Point*) { return members("x", &Point::x, "y", &Point::y); }

namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 3;

struct Mine;
using Add = std::function<void(Mine&)>;

/// The variables of a rank, and what it adds of them to its State.
struct Mine {
  struct Values {
    std::vector<double> numbers;
    std::vector<std::int64_t> counts;
    std::vector<Point> points;
    bool operator==(const Values&) const = default;
  };
  Mine(int of_rank, const Add& add) : rank(of_rank) { add(*this); }
  Mine(const Mine&) = delete;
  Mine& operator=(const Mine&) = delete;
  ~Mine() = default;
  /// Whatever a restore does not write.
  void spoil() {
    for (double& number : values.numbers) number = -1;
    for (std::int64_t& count : values.counts) count = -1;
    for (Point& point : values.points) point = {};
  }
  int rank;
  Values values;
  State state;
};

/// Replicated values are equal on all ranks; all others differ.
int number_of(const Mine& mine, const Placement& placement) {
  return std::holds_alternative<Replicated>(placement) ? 0 : mine.rank;
}

Add numbers(const Placement& placement, std::size_t size = 4) {
  return [placement, size](Mine& mine) {
    mine.values.numbers.assign(size, number_of(mine, placement) + 0.5);
    mine.state.add("x", mine.values.numbers, placement);
  };
}
Add counts(const Placement& placement) {
  return [placement](Mine& mine) {
    mine.values.counts.assign(4, number_of(mine, placement));
    mine.state.add("x", mine.values.counts, placement);
  };
}
Add points(const Placement& placement) {
  return [placement](Mine& mine) {
    mine.values.points.assign(2, {1.0 * number_of(mine, placement), 2});
    mine.state.add("x", mine.values.points, placement);
  };
}
/// Four numbers of an array that has as many on each rank.
Add block(std::uint64_t all = 4 * kRanks) {
  return [all](Mine& mine) { numbers(Shard{Shape{all}, Shape{4 * static_cast<std::uint64_t>(mine.rank)}})(mine); };
}
Add named(const std::string& name) {
  return [name](Mine& mine) {
    mine.values.numbers.assign(4, mine.rank + 0.5);
    mine.state.add(name, mine.values.numbers);
  };
}
void nothing(Mine&) {}

const Placement kOwn;
const Placement kReplicated = Replicated{};

/// One rank, or all but rank 0, do something else than the others.
class Disagreement : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static bool is_odd(int rank) { return GetParam() ? rank != 0 : rank == 1; }
  using AddOf = std::function<Add(int rank)>;
  [[nodiscard]] static AddOf either(const Add& most, const Add& odd) {
    return [most, odd](int rank) { return is_odd(rank) ? odd : most; };
  }

  /// What a checkpoint throws on all ranks: as the first, as the second try, and after one about which all agreed. It
  /// costs no other.
  [[nodiscard]] static std::optional<Failure> thrown(const Add& most, const Add& odd) {
    SimulatedJob job(kRanks);
    std::vector<OnEachRank> met(3, OnEachRank(kRanks));
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const Mine mine(scope.rank, either(most, odd)(scope.rank));
      const Mine agreed(scope.rank, most);
      for (std::size_t i = 0; i < met.size(); ++i) {
        if (i == 2) engine.checkpoint("agreed", agreed.state);
        met[i].put(scope.rank, failure_of([&] { engine.checkpoint("a", mine.state); }));
      }
      EXPECT_EQ(engine.restore(agreed.state), "agreed");
      commit_value(engine, "b", 1);
    }));
    EXPECT_EQ(text_of(met[1].same()), text_of(met[0].same()));
    EXPECT_EQ(text_of(met[2].same()), text_of(met[0].same()));
    return met[0].same();
  }
  static void expect_mismatch(const Add& most, const Add& odd, const std::vector<std::string>& parts) {
    const auto failure = thrown(most, odd);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::mismatch) << text_of(failure);
    for (const std::string& part : parts) EXPECT_THAT(failure->message, HasSubstr(part));
  }

  /// Saves what the ranks have, and restores what they ask for in another start: what that throws on all ranks, or
  /// nothing if each got its own bytes.
  [[nodiscard]] static std::optional<Failure> restored(const AddOf& saved, const AddOf& asked) {
    SimulatedJob job(kRanks);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.checkpoint("a", Mine(scope.rank, saved(scope.rank)).state);
    }));
    OnEachRank met(kRanks);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Mine mine(scope.rank, asked(scope.rank));
      const Mine::Values expected = mine.values;
      mine.spoil();
      const auto failure = failure_of([&] { EXPECT_EQ(engine.restore(mine.state), "a"); });
      met.put(scope.rank, failure);
      EXPECT_TRUE(failure || mine.values == expected) << "rank " << scope.rank;
      const Mine again(scope.rank, saved(scope.rank));
      EXPECT_EQ(engine.restore(again.state), "a") << "whatever was asked for before";
    }));
    return met.same();
  }
};

TEST_P(Disagreement, AboutThePlacementIsAMismatch) {
  expect_mismatch(numbers(kReplicated), numbers(kOwn),
                  {"disagree about region 'x'", "replicated float64", "that rank alone"});
  expect_mismatch(numbers(kOwn), numbers(kReplicated),
                  {"disagree about region 'x'", "replicated float64", "that rank alone"});
  expect_mismatch(numbers(kReplicated), block(), {"disagree about region 'x'", "replicated float64", "a shard of"});
}

TEST_P(Disagreement, AboutTypeOrShapeOfWhatIsSharedIsAMismatch) {
  expect_mismatch(numbers(kReplicated), counts(kReplicated), {"disagree about region 'x'", "float64", "int64"});
  expect_mismatch(numbers(kReplicated), points(kReplicated), {"disagree about region 'x'", "float64", "structs (x:"});
  expect_mismatch(numbers(kReplicated), numbers(kReplicated, 5), {"disagree about region 'x'", "shape 4", "shape 5"});
  expect_mismatch(block(), block(4 * kRanks + 4), {"disagree about region 'x'", "shape 12", "shape 16"});
}

TEST_P(Disagreement, ABlockThatIsMissingOnOneRankIsAMismatch) {
  expect_mismatch(block(), nothing, {"'x'"});
  expect_mismatch(block(), numbers(kOwn), {"'x'"});
}

TEST_P(Disagreement, AboutWhatIsARanksOwnIsNone) {
  for (const auto& [most, odd] : std::vector<std::pair<Add, Add>>{{numbers(kOwn), counts(kOwn)},
                                                                  {numbers(kOwn), points(kOwn)},
                                                                  {numbers(kOwn), numbers(kOwn, 7)},
                                                                  {numbers(kOwn), named("y")},
                                                                  {named("x/y"), numbers(kOwn)},
                                                                  {numbers(kOwn), nothing},
                                                                  {nothing, numbers(kOwn)},
                                                                  {numbers(kReplicated), nothing}}) {
    EXPECT_EQ(text_of(restored(either(most, odd), either(most, odd))), "success");
  }
}

TEST_P(Disagreement, AboutWhatIsAskedForIsOneErrorOnAllRanks) {
  struct Case {
    Add saved;
    Add asked_by_some;
    ErrorCode code;
    const char* words;
  };
  for (const Case& one :
       {Case{numbers(kOwn), named("y"), ErrorCode::not_found, "has no region 'y' on rank 1"},
        Case{numbers(kOwn), counts(kOwn), ErrorCode::mismatch, "was saved as float64 and is loaded as int64"},
        Case{points(kOwn), numbers(kOwn), ErrorCode::mismatch, "was saved as opaque and is loaded as float64"},
        Case{numbers(kOwn), numbers(kReplicated), ErrorCode::mismatch, "is loaded as a replicated region"},
        Case{numbers(kReplicated), block(), ErrorCode::mismatch, "is loaded as the block at 4 of a global array"},
        Case{block(), block(16), ErrorCode::mismatch, "is loaded as the block at 4 of a global array of shape 16"}}) {
    const auto failure = restored(either(one.saved, one.saved), either(one.saved, one.asked_by_some));
    ASSERT_TRUE(failure) << one.words;
    EXPECT_EQ(failure->code, one.code) << text_of(failure);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_THAT(failure->message, HasSubstr(one.words));
  }
}

/// Numbers and counts, in this order or the other.
Add both(bool counts_first) {
  return [counts_first](Mine& mine) {
    mine.values.numbers.assign(4, mine.rank + 0.5);
    mine.values.counts.assign(3, mine.rank);
    if (counts_first) mine.state.add("c", mine.values.counts);
    mine.state.add("n", mine.values.numbers);
    if (!counts_first) mine.state.add("c", mine.values.counts);
  };
}

TEST_P(Disagreement, AboutTheOrderOrLessThanAllIsNone) {
  const auto all = either(both(false), both(false));
  EXPECT_EQ(text_of(restored(either(both(false), both(true)), all)), "success");
  EXPECT_EQ(text_of(restored(all, either(both(false), both(true)))), "success");
  EXPECT_EQ(text_of(restored(all, either(both(false), nothing))), "success");
}

INSTANTIATE_TEST_SUITE_P(Of, Disagreement, testing::Bool(),
                         [](const auto& each) { return each.param ? "most" : "one"; });

}  // namespace
}  // namespace kedge::faults
