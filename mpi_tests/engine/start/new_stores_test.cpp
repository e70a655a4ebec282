// A start whose stores are new says in its first line where rank 0's was at the last start, as the run's record knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_record.hpp"

namespace kedge::faults::new_stores_test {
namespace {

class NewStores : public RightRun {
 protected:
  void use_other_stores() { job.options.store.path = "/nodes/{node}/other"; }
  /// As it is recorded on the prefix of this directory.
  [[nodiscard]] std::string recorded(const std::string& directory) {
    const auto found =
        persist::read_run_record(*job.disk.view(0), persist::records_directory(directory + "/checkpoints", "main"));
    return found.record ? found.record->store : "no record";
  }
  /// A start in other stores names this one.
  void expect_named(const std::string& store) {
    use_other_stores();
    const auto before = static_cast<std::ptrdiff_t>(job.log().size());
    EXPECT_FALSE(reopen(job).failure);
    const auto lines = job.log();
    const std::string words = "all its stores are new (rank 0's was " + store + " at the last start)";
    EXPECT_TRUE(std::any_of(lines.begin() + before, lines.end(), [&](const std::string& line) {
      return says(line, {words});
    })) << lines.back();
  }
};

/// Checkpoints that were never flushed are in the stores of the last start: who sets another store.path steps back.
TEST_F(NewStores, TheFirstLineSaysWhereTheLastOneWas) {
  commit_steps(job, {{"a", 1}});
  use_other_stores();
  const std::string elsewhere = first_line();
  EXPECT_TRUE(says(elsewhere, {"store /nodes/node0/other/kedge-1000-main-", "its stores are new",
                               "rank 0's was /nodes/node0/kedge-1000-main-"}))
      << elsewhere;
  const std::string again = first_line();
  EXPECT_FALSE(says(again, {"its stores are new"})) << again;
  for (int node = 0; node < 4; ++node) job.disk.remove_all(compose("/nodes/node{}/other", node));
  const std::string lost = first_line();
  EXPECT_TRUE(says(lost, {"its stores are new, so only those that were flushed are available"})) << lost;
}

/// What was saved in the meantime is not lost, but nobody finds it who is not told.
TEST_F(NewStores, WhoGoesBackToTheOldOnesIsToldOfTheNewOnes) {
  commit_steps(job, {{"a", 1}});
  const std::string old_path = job.options.store.path;
  local_only();
  use_other_stores();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  EXPECT_TRUE(recorded("/case").starts_with("/nodes/node0/other/")) << recorded("/case");
  const auto before = job.disk.snapshot();
  job.options.store.path = old_path;
  // A start that opens nothing changes nothing of that.
  expect_all_returned(job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); }));
  const std::string line = first_line();
  EXPECT_TRUE(says(line, {"has checkpoints; rank 0's store was /nodes/node0/other/kedge-1000-main-",
                          "at the last start and may have newer ones"}))
      << line;
  const std::string again = first_line();
  EXPECT_FALSE(says(again, {"may have newer ones"})) << again;
  // Where it is gone, nothing can be had there.
  job.disk.restore(before);
  job.disk.remove_all("/nodes/node0/other");
  const std::string lost = first_line();
  EXPECT_FALSE(says(lost, {"may have newer ones"})) << lost;
  job.disk.restore(before);
  use_other_stores();
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(NewStores, ACopyDoesNotNameTheOriginals) {
  commit_steps(job, {{"a", 1}});
  const std::string of_original = recorded("/case");
  EXPECT_TRUE(of_original.starts_with("/nodes/node0/kedge-1000-main-")) << of_original;
  copy("/case", "/copy");
  enter("/copy");
  const std::string line = first_line();
  EXPECT_TRUE(says(line, {"a copy of /case", "its stores are new, so only those that were flushed are available"}))
      << line;
  const std::string of_copy = recorded("/copy");
  EXPECT_TRUE(of_copy.starts_with("/nodes/node0/kedge-1000-main-") && of_copy != of_original) << of_copy;
  EXPECT_EQ(recorded("/case"), of_original);
  expect_named(of_copy);
}

TEST_F(NewStores, AFreshRunNamesItsOwn) {
  commit_steps(job, {{"a", 1}});
  const std::string before = recorded("/case");
  job.options.start = StartMode::fresh;
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.options.start = StartMode::continue_;
  const std::string fresh = recorded("/case");
  EXPECT_NE(fresh, before);
  expect_named(fresh);
}

TEST_F(NewStores, ARecordThatIsRebuiltKnowsIt) {
  commit_steps(job, {{"a", 1}});
  const std::string store = recorded("/case");
  job.disk.truncate_from_outside("/case/checkpoints/.kedge/main/run.json", 20);
  expect_named(store);
}

TEST_F(NewStores, AStartThatFailsDoesNotHideIt) {
  commit_steps(job, {{"a", 1}});
  const std::string store = recorded("/case");
  const auto before = job.disk.snapshot();
  for (const bool fresh : {false, true}) {
    use_other_stores();
    job.options.start = fresh ? StartMode::fresh : StartMode::continue_;
    (void)job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); });
    const auto operations = job.operations[0];
    for (std::uint64_t n = 1; n <= operations; ++n) {
      SCOPED_TRACE(compose("operation {} fails{}", n, fresh ? ", fresh" : ""));
      job.disk.restore(before);
      job.options.start = fresh ? StartMode::fresh : StartMode::continue_;
      job.disk.fail(0, n, EIO);
      const auto outcomes = job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); });
      job.options.start = StartMode::continue_;
      if (!outcomes[0].failure || (fresh && recorded("/case") != store)) continue;  // it took place
      expect_named(store);
      if (HasFailure()) return;
    }
  }
}

/// It began, and fetched nothing into its stores.
TEST_F(NewStores, AStartThatEndsBeforeItOpensDoesNotHideIt) {
  commit_steps(job, {{"a", 1}});
  const std::string store = recorded("/case");
  use_other_stores();
  for (int start = 0; start < 2; ++start) {
    expect_all_returned(job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); }));
  }
  expect_named(store);
}

}  // namespace
}  // namespace kedge::faults::new_stores_test
