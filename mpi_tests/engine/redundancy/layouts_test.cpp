// Which scheme a layout permits and auto takes, how large sets are, when commits are protected or wait asks for it, and
// which files stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::layouts_test {
namespace {

using format::SetFileKind;
using Names = std::vector<std::string>;

struct Job : SimulatedJob {
  explicit Job(const std::vector<int>& ranks_on, Scheme scheme = Scheme::xor_) : SimulatedJob(1) {
    options.redundancy.scheme = scheme;
    place(*this, on_nodes(ranks_on));
  }
  [[nodiscard]] std::size_t lines(std::string_view part) const {
    const auto all = log();
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [&](const auto& line) { return line.find(part) != std::string::npos; }));
  }
};

Failure expect_all_refused(SimulatedJob& job, ErrorCode code) {
  return expect_all_failed(job.start([](RankScope& scope) { (void)scope.make_engine(); }), code);
}

TEST(LayoutPolicy, EightAndOneAndOneIsRefusedWithTheNumbersIfAskedFor) {
  for (const Scheme scheme : {Scheme::xor_, Scheme::partner}) {
    Job job({8, 1, 1}, scheme);
    const Failure failure = expect_all_refused(job, ErrorCode::invalid_argument);
    EXPECT_TRUE(
        says(failure.message, {"redundancy.scheme", std::string(to_string(scheme)), "10 ranks", "8", "5", "single"}))
        << failure.message;
    // Refused before anything was touched: the next start is as if it had never been.
    job.options.redundancy.scheme = Scheme::automatic;
    commit_steps(job, {{"a", 1}});
    EXPECT_EQ(reopen(job).step, 1);
  }
}

TEST(LayoutPolicy, AutomaticTakesTheBestThatTheLayoutPermitsAndSaysSoOnce) {
  struct Case {
    std::vector<int> ranks_on;
    Scheme scheme;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{8, 1, 1}, Scheme::single, "not protected against the loss of a node (scheme single)"},
      {{5, 3}, Scheme::single, "not protected against the loss of a node (scheme single)"},
      {{4}, Scheme::single, "one failure domain"},
      {{1}, Scheme::single, "one failure domain"},
      {{2, 2}, Scheme::partner, "two failure domains"},
      {{1, 1}, Scheme::partner, "two failure domains"},
      {{1, 1, 1}, Scheme::xor_, ""},
      {{4, 3, 1}, Scheme::xor_, ""},
      {{5, 1, 1, 1, 1, 1}, Scheme::xor_, ""},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::PrintToString(one.ranks_on));
    Job job(one.ranks_on, Scheme::automatic);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    if (!one.says.empty()) {
      EXPECT_EQ(job.lines(one.says), 1U);
    }
    const auto parity = set_files(job.disk, SetFileKind::parity);
    EXPECT_EQ(parity.empty(), one.scheme == Scheme::single);
    for (const SetFile& file : parity) EXPECT_EQ(file.set.scheme, one.scheme);
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 2);
    EXPECT_EQ(opened.level, one.scheme == Scheme::single ? Level::local : Level::protected_);
    // Protection that is not possible is not tried, neither by commit nor by open.
    EXPECT_EQ(job.lines("not protected against the loss of a node:"), 0U);
    EXPECT_EQ(job.lines("is protected again"), 0U);
  }
}

TEST(LayoutPolicy, SetsHaveTheSizeAskedForWhereTheLayoutPermits) {
  struct Case {
    std::vector<int> ranks_on;
    std::uint32_t set_size;
    std::multiset<std::size_t> sizes;
  };
  const std::vector<Case> cases = {
      {{1, 1, 1, 1, 1, 1, 1, 1}, 8, {8}},
      {{1, 1, 1, 1, 1, 1, 1, 1}, 4, {4, 4}},
      {{1, 1, 1, 1, 1, 1, 1, 1}, 3, {3, 3, 2}},
      {{1, 1, 1, 1, 1, 1, 1}, 2, {2, 2, 3}},
      {{2, 2, 2, 2}, 8, {4, 4}},
      {{4, 3, 1}, 8, {2, 2, 2, 2}},
      {{3, 1, 1, 1}, 8, {2, 2, 2}},
      {{1, 1, 1, 1, 1}, 3, {3, 2}},
  };
  for (const Case& one : cases) {
    Job job(one.ranks_on);
    job.options.redundancy.set_size = one.set_size;
    commit_steps(job, {{"a", 1}});
    const Names nodes = on_nodes(one.ranks_on);
    std::multiset<std::size_t> sizes;
    for (const auto& set : sets_of(job.disk, "a")) {
      sizes.insert(set.size());
      std::set<std::string> on;
      for (const int rank : set) on.insert(nodes[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(on.size(), set.size()) << "members on one node";
    }
    EXPECT_EQ(sizes, one.sizes) << testing::PrintToString(one.ranks_on) << " in sets of " << one.set_size;
  }
}

std::size_t count_files(const SimulatedJob& job, const std::string& node, const std::string& prefix) {
  const auto files = files_in(job.disk, node);
  return static_cast<std::size_t>(
      std::ranges::count_if(files, [&](const auto& file) { return file.starts_with(prefix); }));
}

TEST(LayoutPolicy, EveryNthCommitIsProtectedAndStaysBesideTheNewest) {
  for (const std::uint64_t every : {1U, 2U, 3U}) {
    for (const std::uint32_t keep : {1U, 2U}) {
      Job job({1, 1, 1, 1});
      job.options.redundancy.every = every;
      job.options.store.keep = keep;
      for (int commits = 1; commits <= 7; ++commits) {
        SCOPED_TRACE(compose("every {}, keep {}, commits {}", every, keep, commits));
        job.disk.remove_all("/nodes");
        job.disk.remove_all("/prefix");
        job.disk.make_directories("/nodes", 0755);
        job.disk.make_directories("/prefix", 0755);
        expect_all_returned(job.start([&](RankScope& scope) {
          Engine engine = scope.make_engine();
          for (int step = 1; step <= commits; ++step) {
            const Tag tag = compose("t{}", step);
            commit_step(engine, scope.rank, tag, step);
            const bool due = step % static_cast<int>(every) == 0;
            EXPECT_EQ(engine.level(tag), due ? Level::protected_ : Level::local);
            const std::string node = compose("node{}", scope.rank);
            EXPECT_LE(count_files(job, node, "rank-"), keep + 1 + (every > 1 ? 1 : 0));
            EXPECT_LE(count_files(job, node, "parity-"), keep + 1);
            EXPECT_LE(count_files(job, node, "set-"), keep + 1);
          }
        }));
        job.disk.remove_all(store_of(1));
        const Opened opened = reopen(job);
        const int newest_protected = commits - commits % static_cast<int>(every);
        if (newest_protected == 0) {
          ASSERT_TRUE(opened.failure);
          EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
        } else {
          EXPECT_EQ(opened.step, newest_protected);
          EXPECT_EQ(opened.level, Level::protected_);
        }
      }
    }
  }
}

TEST(LayoutPolicy, WaitProtectsOnDemand) {
  for (const bool opened_again : {false, true}) {
    Job job({1, 1, 1, 1});
    job.options.redundancy.every = 0;
    job.options.store.keep = 2;
    if (opened_again) commit_steps(job, {{"a", 1}});
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (opened_again) {
        EXPECT_EQ(engine.open(), "a");
      } else {
        commit_step(engine, scope.rank, "a", 1);
        commit_step(engine, scope.rank, "b", 2);
      }
      EXPECT_EQ(engine.level("a"), Level::local);
      engine.wait("a", Level::local);  // is there
      EXPECT_EQ(engine.level("a"), Level::local);
      engine.wait("a", Level::protected_);
      EXPECT_EQ(engine.level("a"), Level::protected_);
      engine.wait("a", Level::protected_);
      if (opened_again) engine.close();
      EXPECT_EQ(engine.level("b"), opened_again ? Level::none : Level::local);
    }));
    job.disk.remove_all(store_of(3));
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.step, 1);
    EXPECT_EQ(opened.level, Level::protected_);
  }
}

TEST(LayoutPolicy, WaitSupersedesWhatStayedForTheSakeOfItsLevel) {
  Job job({1, 1, 1});
  job.options.redundancy.every = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::protected_);
    commit_step(engine, scope.rank, "b", 2);
    EXPECT_EQ(engine.level("a"), Level::protected_) << "stays while nothing newer is protected";
    engine.wait("b", Level::protected_);
    EXPECT_EQ(engine.level("a"), Level::none);
  }));
}

TEST(LayoutPolicy, WaitSaysWhyALevelCannotBeReached) {
  for (const Scheme scheme : {Scheme::xor_, Scheme::single}) {
    Job job({1, 1, 1}, scheme);
    OnEachRank unknown(3), single(3), early(3);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      early.put(scope.rank, failure_of([&] { engine.wait("a", Level::local); }));
      commit_step(engine, scope.rank, "a", 1);
      unknown.put(scope.rank, failure_of([&] { engine.wait("b", Level::protected_); }));
      single.put(scope.rank, failure_of([&] { engine.wait("a", Level::protected_); }));
      engine.create("c");
      EXPECT_EQ(code_of([&] { engine.wait("a", Level::local); }), ErrorCode::bad_state);
      engine.abandon();
      commit_step(engine, scope.rank, "d", 2);
    }));
    EXPECT_EQ(early.same()->code, ErrorCode::not_found);
    EXPECT_EQ(unknown.same()->code, ErrorCode::not_found);
    ASSERT_EQ(single.same().has_value(), scheme == Scheme::single);
    if (scheme == Scheme::single) {
      EXPECT_EQ(single.same()->code, ErrorCode::invalid_argument);
      EXPECT_TRUE(says(single.same()->message, {"scheme is single", "redundancy.scheme"})) << single.same()->message;
    }
    EXPECT_EQ(reopen(job).step, 2);
  }
}

}  // namespace
}  // namespace kedge::faults::layouts_test
