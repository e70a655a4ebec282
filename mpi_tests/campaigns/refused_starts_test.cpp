// Bad input: each way in which a start, or what it saves and loads, is refused, on one rank and on all, at the second
// start and at the fifth, and two of them together, is one error on all ranks and loses nothing. At the first start,
// where nothing is there yet, a launch is right and data may be wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "engine/start/variables.hpp"
#include "harness/named_communicator.hpp"
#include "harness/several_starts.hpp"
#include "kedge/for_bindings.hpp"

namespace kedge::faults::refused_starts_test {
namespace {

constexpr int kRanks = 3;
const int kNothing = Opened{}.step;

enum class Wrong : std::uint8_t {
  part,     ///< another part of a launch of the same size
  task,     ///< another task of a job array
  lineage,  ///< the stores know checkpoints that the prefix, which lost its records, does not
  saved,    ///< a region that cannot be saved as it is, as an array with a mask
  loaded,   ///< one that must not be loaded, as what is not plain data
};
constexpr std::array kWrong{Wrong::part, Wrong::task, Wrong::lineage, Wrong::saved, Wrong::loaded};

std::string name_of(Wrong wrong) {
  constexpr std::array kNames{"Part", "Task", "Lineage", "Saved", "Loaded"};
  return kNames.at(static_cast<std::size_t>(wrong));
}

using Ranks = std::vector<int>;
using Case = std::tuple<Ranks, int>;  ///< on whom, and at which start

class RefusedStarts : public testing::TestWithParam<Case> {
 protected:
  RefusedStarts() {
    job_.ranks_per_node = 1;
    job_.options.persistent.every = 0;
    job_.in_front = [](int /*rank*/, std::unique_ptr<Communicator> own) {
      return std::make_unique<NamedCommunicator>(std::move(own), "");
    };
  }

  [[nodiscard]] static bool is_on(int rank) {
    const Ranks& who = std::get<Ranks>(GetParam());
    return std::ranges::find(who, rank) != who.end();
  }
  [[nodiscard]] bool is_asked(Wrong wrong) const { return std::ranges::find(asked_, wrong) != asked_.end(); }

  /// The next start is another launch; where it is wrong, by what is asked.
  void launch() {
    const std::string number = std::to_string(++launches_);
    job_.surroundings = [this, number](int rank, start::Environment& environment) {
      const bool is_wrong = is_on(rank);
      environment.find_variable = from({{"OMPI_MCA_orte_precondition_transports", "launch-" + number},
                                        {"OMPI_COMM_WORLD_RANK", is_wrong && is_asked(Wrong::part) ? "4" : "0"},
                                        {"OMPI_COMM_WORLD_SIZE", "8"},
                                        {"SLURM_ARRAY_TASK_ID", is_wrong && is_asked(Wrong::task) ? "2" : "1"}});
      environment.processes = {"vm/" + number + "@1", "vm/launcher@" + number, ""};
    };
  }

  /// Nobody may touch these in a start that is refused.
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> kept() const {
    std::map<std::string, std::vector<std::byte>> files;
    for (const auto& [path, entry] : job_.disk.snapshot()) {
      const bool is_data = path.ends_with(".h5") || path.ends_with(".kedge") || path.starts_with("/prefix");
      if (is_data && entry.status.kind == fs::FileStatus::Kind::file) files[path] = entry.bytes;
    }
    return files;
  }

  /// The prefix is a new one, and one node's store is there, or all are.
  void lose_lineage() {
    job_.disk.remove_all("/prefix");
    job_.disk.make_directories("/prefix", 0755);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (!is_on(rank)) job_.disk.remove_all(compose("/nodes/node{}", rank));
    }
  }

  /// A start that goes wrong as it is asked to: what all ranks get, the same.
  std::optional<Failure> go_wrong() {
    launch();
    const auto outcomes = job_.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const bool is_open = engine.open().has_value();
      EXPECT_EQ(is_open, std::get<int>(GetParam()) > 1);
      if (is_asked(Wrong::loaded) && is_on(scope.rank)) (void)ForBindings::refuse(engine, "x", "it is not plain data");
      if (is_open) engine.close();
      engine.create("wrong");
      if (is_asked(Wrong::saved) && is_on(scope.rank)) (void)ForBindings::refuse(engine, "x", "it has a mask");
      engine.commit();
    });
    for (const auto& outcome : outcomes) {
      EXPECT_EQ(outcome.failure.has_value(), outcomes[0].failure.has_value());
      EXPECT_FALSE(outcome.died);
      EXPECT_EQ(to_string(outcome.failure.value_or(Failure{})), to_string(outcomes[0].failure.value_or(Failure{})));
    }
    return outcomes[0].failure;
  }

  void expect_at(int step, const Steps& then = {}) {
    launch();
    const Opened opened = reopen(job_, latest, Newer::keep, then);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.step, step);
  }

  /// Whether this start is refused before it has anything: for its lineage on whichever rank, for its launch or task if
  /// rank 0, which says it for all, is asked.
  [[nodiscard]] bool is_start_refused() const {
    if (std::get<int>(GetParam()) == 1) return false;  // nothing was there before
    return is_asked(Wrong::lineage) || (is_on(0) && (is_asked(Wrong::part) || is_asked(Wrong::task)));
  }

  void meet(const std::vector<Wrong>& wrong) {
    const auto before = job_.disk.snapshot();
    asked_ = wrong;
    if (is_asked(Wrong::lineage)) lose_lineage();
    const auto untouched = kept();
    const auto failure = go_wrong();
    if (is_start_refused()) {
      EXPECT_EQ(failure.value_or(Failure{}).code, ErrorCode::mismatch) << to_string(failure.value_or(Failure{}));
      EXPECT_TRUE(kept() == untouched) << "it left or changed files";
    } else if (is_asked(Wrong::saved) || (is_asked(Wrong::loaded) && std::get<int>(GetParam()) > 1)) {
      EXPECT_EQ(failure.value_or(Failure{}).code, ErrorCode::invalid_argument);
    } else {
      EXPECT_FALSE(failure) << to_string(*failure);
    }
    if (is_asked(Wrong::lineage) || !failure) job_.disk.restore(before);  // what was taken away, or committed
    asked_.clear();
  }

  SimulatedJob job_{kRanks};
  std::vector<Wrong> asked_;
  int launches_ = 0;
};

TEST_P(RefusedStarts, AreOneErrorOnAllAndCostNothing) {
  const int number = std::get<int>(GetParam());
  if (number > 1) {
    launch();
    commit_steps(job_, {{"a", 1}});
  }
  for (int start = 2; start < number; ++start) expect_at(start - 1, {{"a", start}});
  for (const Wrong one : kWrong) {
    for (const Wrong other : kWrong) {
      if (other < one || (number == 1 && one < Wrong::saved)) continue;
      SCOPED_TRACE(name_of(one) + " and " + name_of(other));
      meet({one, other});
      expect_at(number > 1 ? number - 1 : kNothing);
      if (HasFailure()) return;
    }
  }
  expect_at(number > 1 ? number - 1 : kNothing, {{"b", 50}});
  expect_at(50);
}

INSTANTIATE_TEST_SUITE_P(Whoever, RefusedStarts,
                         testing::Combine(testing::Values(Ranks{0}, Ranks{kRanks - 1}, Ranks{0, 1, 2}),
                                          testing::Values(1, 2, 5)),
                         [](const auto& one) {
                           const Ranks& who = std::get<Ranks>(one.param);
                           return compose("{}AtStart{}", who.size() > 1 ? "All" : compose("Rank{}", who[0]),
                                          std::get<int>(one.param));
                         });

}  // namespace
}  // namespace kedge::faults::refused_starts_test
