// A start in which one call of one rank to a file system fails (moved, copied, adopted, fresh, damaged, other input):
// whether it fails or goes on, no commit is lost by it, and none of another job is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"

namespace kedge::faults::failed_starts_test {
namespace {

constexpr int kNothing = -1;  // is found: no step

/// One persistent commit, step 1, and step 2 in the stores alone.
class FailingStart : public RightRun {
 public:
  using RightRun::copy;
  using RightRun::enter;
  using RightRun::job;
  using RightRun::lose_prefix;
  using RightRun::move;

  explicit FailingStart(int ranks) {
    job.ranks = ranks;
    job.ranks_per_node = 1;
    job.options.fingerprint = "one";
    commit_steps(job, {{"a", 1}});
    local_only();
    reopen(job, latest, Newer::keep, {{"b", 2}});
  }
  /// The next start there finds this step, or one of these.
  void expect_at(const std::string& directory, const std::vector<int>& steps) {
    enter(directory);
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_TRUE(std::ranges::find(steps, opened.step) != steps.end()) << "step " << opened.step;
  }
  void expect_mismatch() { (void)expect_refused(ErrorCode::mismatch); }
  /// It goes on, or does not know what lies in the stores: in silence it does not begin from zero.
  void expect_at_or_mismatch(int step) {
    const Opened opened = reopen(job);
    EXPECT_TRUE(opened.failure || opened.step == step) << opened.step;
    EXPECT_EQ(opened.failure.value_or(Failure{ErrorCode::mismatch, {}, -1, {}, 0}).code, ErrorCode::mismatch);
  }
  void damage_record() {
    const std::string_view text = "{\"run_id\": \"12\"}";
    job.disk.write_all("/case/checkpoints/.kedge/main/run.json", std::as_bytes(std::span(text)));
  }
  /// Of the prefix's names that begin so.
  void remove(const std::string& beginning) {
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path.starts_with("/case/checkpoints/" + beginning)) job.disk.remove_all(path);
    }
  }
};

/// What a start is to find, and the next after it.
struct Situation {
  std::string name;
  std::function<void(FailingStart&)> arrange;  ///< on the disk
  std::function<void(FailingStart&)> ask;      ///< in the options of the start
  int step = kNothing;                         ///< that it finds if it goes on
  std::function<void(FailingStart&)> next;
  bool is_refused = false;  ///< also where nothing fails
};

std::ostream& operator<<(std::ostream& out, const Situation& situation) { return out << situation.name; }

void nothing(FailingStart& /*it*/) {}

const std::vector<Situation>& situations() {
  using It = FailingStart;
  const auto moved = [](It& it) { it.move("/case", "/moved"); };
  const auto copied = [](It& it) { it.copy("/case", "/copy"); };
  const auto lost = [](It& it) { it.lose_prefix(); };
  const auto goes_on = [](It& it) { it.expect_at("/case", {2}); };
  static const std::vector<Situation> all = {
      {"MovedAndThenBack", moved, [](It& it) { it.enter("/moved"); }, 2,
       [](It& it) {
         it.move("/moved", "/case");
         it.expect_at("/case", {2});
       }},
      {"MovedAndThenOn", moved, [](It& it) { it.enter("/moved"); }, 2,
       [](It& it) {
         it.move("/moved", "/further");
         it.expect_at("/further", {2});
       }},
      {"ReachedByAnotherPath",
       [](It& it) {
         for (int rank = 0; rank < it.job.ranks; ++rank) it.job.disk.mount(rank, "/mounted", "/case");
       },
       [](It& it) { it.enter("/mounted"); }, 2, goes_on},
      {"Copied", copied, [](It& it) { it.enter("/copy"); }, 1,
       [](It& it) {
         it.expect_at("/copy", {1});
         it.expect_at("/case", {2});
       }},
      {"MovedAndACopyTookTheStores",
       [](It& it) {
         it.copy("/case", "/copy");
         it.move("/case", "/moved");
         it.enter("/copy");
         reopen(it.job, latest, Newer::keep, {{"c", 30}});
       },
       [](It& it) { it.enter("/moved"); }, 1,
       [](It& it) {
         it.expect_at("/moved", {1});
         it.expect_at("/copy", {30});
       }},
      {"Adopted", lost, [](It& it) { it.job.options.start = StartMode::adopt; }, 2, goes_on},
      {"AdoptedOnce", lost, [](It& it) { it.job.options.start = StartMode::adopt; }, 2,
       [](It& it) {
         it.job.options.start = StartMode::continue_;
         it.expect_at_or_mismatch(2);
       }},
      {"NotAdopted", lost, nothing, kNothing,
       [](It& it) {
         it.expect_mismatch();
         it.job.options.start = StartMode::adopt;
         it.expect_at("/case", {2});
       },
       true},
      {"Fresh", nothing, [](It& it) { it.job.options.start = StartMode::fresh; }, kNothing,
       [](It& it) {
         it.job.options.start = StartMode::continue_;
         it.expect_at("/case", {2, kNothing});
       }},
      {"DamagedRecord", [](It& it) { it.damage_record(); }, nothing, 2, goes_on},
      {"DamagedRecordThatOnlyManifestsKnow",
       [](It& it) {
         it.damage_record();
         it.remove(".kedge/main/begun");
       },
       nothing, 2, goes_on},
      {"DamagedRecordThatOnlyStoresKnow",
       [](It& it) {
         it.damage_record();
         it.remove(".kedge/main/begun");
         it.remove("a.");
       },
       nothing, 2, goes_on},
      {"OtherInput", nothing, [](It& it) { it.job.options.fingerprint = "two"; }, kNothing,
       [](It& it) {
         it.expect_mismatch();
         it.job.options.fingerprint = "one";
         it.expect_at("/case", {2});
       },
       true},
      {"OtherInputAccepted", nothing,
       [](It& it) {
         it.job.options.fingerprint = "two";
         it.job.options.start = StartMode::accept;
       },
       2, goes_on},
  };
  return all;
}

class FailedStarts : public FailingStart, public ::testing::WithParamInterface<std::tuple<Situation, int>> {
 protected:
  FailedStarts() : FailingStart(std::get<1>(GetParam())) {}
  [[nodiscard]] static const Situation& situation() { return std::get<0>(GetParam()); }
  /// What a start throws on all ranks; one that goes on finds what it is to find.
  std::optional<Failure> start() {
    const auto outcomes = job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      job.disk.heal(scope.rank);
      const bool found = engine.open().has_value();
      EXPECT_EQ(found ? load_step(engine, scope.rank) : kNothing, situation().step);
      if (found) engine.close();
    });
    const auto& first = outcomes[0].failure;
    for (const auto& outcome : outcomes) {
      EXPECT_EQ(outcome.failure.has_value(), first.has_value());
      EXPECT_TRUE(!outcome.failure || !first || outcome.failure->code == first->code);
    }
    return first;
  }
  /// Each operation and each read of this rank fails in turn.
  void fail_each(int rank, bool in_read, std::uint64_t last, const FaultyDisk::Snapshot& before) {
    const Options options = job.options;
    for (std::uint64_t n = 1; n <= last && !HasFailure(); ++n) {
      SCOPED_TRACE(compose("rank {} fails in {} {}", rank, in_read ? "read" : "operation", n));
      job.disk.restore(before);
      situation().ask(*this);
      if (in_read) job.disk.fail_read(rank, n, EIO);
      else job.disk.fail(rank, n, EIO);
      EXPECT_TRUE(start() || !situation().is_refused) << "it was taken";
      situation().next(*this);
      job.options = options;
    }
  }
};

TEST_P(FailedStarts, WhateverCallOfARankFailsTheNextFindsWhatItShould) {
  situation().arrange(*this);
  const auto before = job.disk.snapshot();
  const Options options = job.options;
  situation().ask(*this);
  const auto outcomes = job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); });
  EXPECT_EQ(outcomes[0].failure.has_value(), situation().is_refused);
  const auto operations = job.operations;
  const auto reads = job.reads;
  EXPECT_GT(operations[0], 10U);
  EXPECT_GT(reads[0], 20U);
  job.options = options;
  fail_each(job.ranks - 1, false, operations.back(), before);
  fail_each(job.ranks - 1, true, reads.back(), before);
}

// Rank 0 where nobody else knows better, and one that is not rank 0.
INSTANTIATE_TEST_SUITE_P(Situations, FailedStarts,
                         ::testing::Combine(::testing::ValuesIn(situations()), ::testing::Values(1, 2)),
                         [](const auto& one) {
                           return compose("{}OfRank{}", std::get<0>(one.param).name, std::get<1>(one.param) - 1);
                         });

}  // namespace
}  // namespace kedge::faults::failed_starts_test
