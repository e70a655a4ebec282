// Every mutating operation of a history with redundancy, in protect, rebuild, relocation and re-protection, is a point
// at which one rank, or all, die, and then one more node may be lost: what was protected is there, and nothing stays
// behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "base/text.hpp"
#include "harness/full_test.hpp"
#include "harness/redundancy_history.hpp"

namespace kedge::faults::redundancy_crash_points_test {
namespace {

constexpr int kSteps = 3;  ///< committed and protected before a start that recovers

const Layout kXor{.name = "xor", .scheme = Scheme::xor_, .ranks = 3};
const Layout kPartner{.name = "partner", .scheme = Scheme::partner, .ranks = 3};  // one ring of three
const Layout kPairs{.name = "pairs", .scheme = Scheme::partner, .ranks = 4};      // {0, 2} and {1, 3}
const Layout kTwoOnANode{.name = "two_on_a_node", .scheme = Scheme::xor_, .ranks = 6, .ranks_per_node = 2};
const Layout kReedSolomon{.name = "rs", .scheme = Scheme::rs, .ranks = 4};  // one set that may lose two

class RedundancyCrashPoints : public testing::TestWithParam<Layout> {
 protected:
  /// Steps 1 to kSteps are there, protected; then `harm` was done. Every point starts from this.
  struct Scene {
    explicit Scene(const Layout& layout) : job(layout.ranks, disk_of(layout)) {
      use(job, layout);
      Ledger ledger;
      for (const auto& outcome : job.start([&](RankScope& scope) { run_application(scope, kSteps, ledger, false); })) {
        EXPECT_TRUE(outcome.returned());
      }
      EXPECT_EQ(ledger.newest_protected(), kSteps);
    }
    void keep_as_it_is() { before = job.disk.snapshot(); }
    void restore() { job.disk.restore(before); }

    /// One more commit, which is not protected.
    void commit_unprotected() {
      job.options.redundancy.every = 0;
      Ledger ledger;
      for (const auto& outcome : job.start([&](RankScope& scope) { run_application(scope, 1, ledger, false); })) {
        EXPECT_TRUE(outcome.returned());
      }
      job.options.redundancy.every = 1;
      newest = ledger.newest_returned();
      EXPECT_EQ(newest, kSteps + 1);
    }

    SimulatedJob job;
    FaultyDisk::Snapshot before;
    int newest = kSteps;
  };

  static std::vector<testing::RankOutcome> open_once(SimulatedJob& job, Ledger& ledger) {
    return job.start([&](RankScope& scope) { run_application(scope, 0, ledger, false); });
  }

  /// A ledger of what was there before the start that is disturbed.
  static void know_steps(Ledger& ledger, const Scene& scene, bool is_protected) {
    ledger.begun(scene.newest);
    ledger.returned(scene.newest);
    if (is_protected) ledger.is_protected(kSteps);
  }

  static bool any_died(const std::vector<testing::RankOutcome>& outcomes) {
    return std::ranges::any_of(outcomes, [](const auto& outcome) { return outcome.died; });
  }

  /// The scene's next start dies at every operation (sampled). Then `check(point, ledger)` starts again, as it likes.
  template <class Check>
  static void at_every_operation(std::string_view what, Scene& scene, std::uint64_t one_in, bool is_protected,
                                 Check&& check) {
    scene.keep_as_it_is();
    Ledger undisturbed;
    for (const auto& outcome : open_once(scene.job, undisturbed)) ASSERT_TRUE(outcome.returned()) << what;
    ASSERT_EQ(undisturbed.newest_protected(), scene.newest) << what;
    std::uint64_t struck = 0;
    for (const Point& point : points(what, scene.job.operations, one_in)) {
      scene.restore();
      Ledger ledger;
      know_steps(ledger, scene, is_protected);
      plan(scene.job, point);
      const auto outcomes = open_once(scene.job, ledger);
      struck += any_died(outcomes) ? 1U : 0U;
      ASSERT_EQ(joined(check_survivors(outcomes, point.together ? -1 : point.rank)), "")
          << what << ", " << describe(point);
      check(point, ledger);
      if (HasFailure()) {
        ADD_FAILURE() << what << ", " << describe(point);
        return;
      }
    }
    EXPECT_GT(struck, 0U) << what;
  }

  static void expect_same_step(Scene& scene, const Ledger& ledger) {
    EXPECT_EQ(joined(check_nothing_lost(scene.job, ledger)), "");
    EXPECT_EQ(joined(too_many_set_files(scene.job, 3)), "");
  }

  /// From where the start died: once as it is, once with one more node lost.
  static void expect_same_also_without_a_node(Scene& scene, const Point& point, const Ledger& ledger) {
    const auto crashed = scene.job.disk.snapshot();
    expect_same_step(scene, ledger);
    scene.job.disk.restore(crashed);
    const int lost = some_node(point, GetParam());
    lose_node(scene.job, lost);
    EXPECT_EQ(joined(check_after_loss(scene.job, ledger)), "") << "node " << lost << " was lost";
  }
};

class ProtectCrashPoints : public testing::TestWithParam<Layout> {};

/// One start of five checkpoints.
TEST_P(ProtectCrashPoints, ADeathAtEveryOperationOfAProtectionLosesNoCommit) {
  const Layout& layout = GetParam();
  SimulatedJob job(layout.ranks, disk_of(layout));
  use(job, layout);
  const auto empty = job.disk.snapshot();
  const auto run = [&](Ledger& ledger) {
    return job.start([&](RankScope& scope) { run_application(scope, 5, ledger, false); });
  };
  Ledger undisturbed;
  for (const auto& outcome : run(undisturbed)) ASSERT_TRUE(outcome.returned());
  ASSERT_EQ(undisturbed.newest_protected(), layout.every == 1 ? 5 : 4);
  for (const Point& point : points(compose("protect, {}", layout.name), job.operations, 20)) {
    job.disk.restore(empty);
    Ledger ledger;
    plan(job, point);
    const auto outcomes = run(ledger);
    job.kill_all_ranks = false;
    ASSERT_EQ(joined(check_survivors(outcomes, point.together ? -1 : point.rank)), "") << describe(point);
    const auto crashed = job.disk.snapshot();
    const int lost = some_node(point, layout);
    lose_node(job, lost);
    ASSERT_EQ(joined(check_after_loss(job, ledger)), "") << describe(point) << ", then node " << lost << " was lost";
    job.disk.restore(crashed);
    ASSERT_EQ(joined(check_after_crash(job, ledger)), "") << describe(point) << ", and no node was lost";
    ASSERT_EQ(joined(too_many_set_files(job, layout.keep + 1)), "") << describe(point);
  }
}

const Layout kBlock{.name = "block", .scheme = Scheme::xor_, .ranks = 3, .block = true};
const Layout kKeepTwo{.name = "keep_two", .scheme = Scheme::partner, .ranks = 3, .keep = 2};
const Layout kEverySecond{.name = "every_second", .scheme = Scheme::xor_, .ranks = 3, .every = 2};

INSTANTIATE_TEST_SUITE_P(LayoutPolicy, ProtectCrashPoints,
                         testing::Values(kXor, kPartner, kPairs, kTwoOnANode, kBlock, kKeepTwo, kEverySecond,
                                         kReedSolomon),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(RedundancyCrashPoints, ADeathAtEveryOperationOfARebuildLosesNothing) {
  const Layout& layout = GetParam();
  for (int lost = 0; lost < layout.nodes(); ++lost) {
    Scene scene(layout);
    lose_node(scene.job, lost);
    at_every_operation(compose("rebuild of node {}, {}", lost, layout.name), scene, 7, true,
                       [&](const Point&, const Ledger& ledger) { expect_same_step(scene, ledger); });
    if (HasFailure()) return;
  }
}

/// Within the tolerance of what was completed; beyond it the same word on all ranks, and nobody begins from zero.
TEST_P(RedundancyCrashPoints, ASecondNodeIsLostDuringRebuild) {
  const Layout& layout = GetParam();
  std::uint64_t recovered = 0;
  std::uint64_t unrecoverable = 0;
  Scene scene(layout);
  lose_node(scene.job, 0);
  at_every_operation(
      compose("second loss, {}", layout.name), scene, 5, true, [&](const Point& point, const Ledger& ledger) {
        const auto nodes = static_cast<std::uint64_t>(layout.nodes());
        const int second = 1 + static_cast<int>(point.drawn(nodes - 1));
        // The set {1, 3} of pairs has lost nobody yet, rs may lose two, and what was opened again was restored to its
        // full protection.
        const bool within = (layout.name == "pairs" && second != 2) || layout.scheme == Scheme::rs;
        const int opened = ledger.newest_returned();
        lose_node(scene.job, second);
        const Recovery recovery = recover(scene.job, kSteps + 1);
        EXPECT_EQ(joined(recovery.problems), "");
        EXPECT_TRUE(recovery.unrecoverable || recovery.step == opened) << recovery.step << ", node " << second;
        EXPECT_FALSE(within && recovery.unrecoverable) << "node " << second << " is within the tolerance";
        ++(recovery.unrecoverable ? unrecoverable : recovered);
      });
  std::cout << recovered << " recovered, " << unrecoverable << " unrecoverable\n";
}

/// Ranks come back on other nodes; no node is lost before, one may be after the crash.
TEST_P(RedundancyCrashPoints, ADeathAtEveryOperationOfARelocationLosesNothing) {
  const Layout& layout = GetParam();
  Scene scene(layout);
  scene.job.nodes = other_nodes(layout);
  at_every_operation(
      compose("relocation, {}", layout.name), scene, 12, true, [&](const Point& point, const Ledger& ledger) {
        const auto crashed = scene.job.disk.snapshot();
        expect_same_step(scene, ledger);
        const int lost = some_node(point, layout);
        scene.job.disk.restore(crashed);
        lose_node(scene.job, lost);
        EXPECT_EQ(joined(check_after_loss(scene.job, ledger)), "") << "node " << lost << " was lost";
        if (point.drawn(4) != 0) return;
        scene.job.disk.restore(crashed);
        scene.job.nodes = first_nodes(layout);
        EXPECT_EQ(joined(check_nothing_lost(scene.job, ledger)), "") << "the ranks came back to their first nodes";
        scene.job.nodes = other_nodes(layout);
      });
}

/// Once the commit is protected where its ranks are now, nothing of it takes space where they were.
TEST_P(RedundancyCrashPoints, RelocationLeavesNothingBehind) {
  const Layout& layout = GetParam();
  Scene scene(layout);
  scene.job.nodes = other_nodes(layout);
  Ledger ledger;
  for (const auto& outcome : open_once(scene.job, ledger)) ASSERT_TRUE(outcome.returned());
  ASSERT_EQ(ledger.newest_protected(), kSteps);
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const std::string mine = compose("/nodes/{}/", scene.job.nodes.at(static_cast<std::size_t>(rank)));
    std::size_t containers = 0;
    for (const std::string& path : container_files(scene.job.disk, rank)) {
      EXPECT_TRUE(path.starts_with(mine)) << path << " is left behind by rank " << rank;
      ++containers;
    }
    EXPECT_GT(containers, 0U);
  }
}

/// Parity, or a descriptor, of one member is gone: the next open protects anew, beside what is there.
TEST_P(RedundancyCrashPoints, ADeathWhileALostFileIsProtectedAgainLosesNothing) {
  const Layout& layout = GetParam();
  for (const std::string prefix : {"parity-", "set-"}) {
    Scene scene(layout);
    const std::string gone = compose("/{}1.", prefix);
    for (const auto& [path, entry] : scene.job.disk.snapshot()) {
      if (path.find(gone) != std::string::npos) scene.job.disk.remove_all(path);
    }
    // Without one descriptor the set can still be decoded.
    const bool is_protected = prefix == "set-";
    at_every_operation(compose("{} gone, {}", prefix, layout.name), scene, 9, is_protected,
                       [&](const Point& point, const Ledger& ledger) {
                         const auto crashed = scene.job.disk.snapshot();
                         expect_same_step(scene, ledger);
                         if (!is_protected) return;
                         scene.job.disk.restore(crashed);
                         const int lost = some_node(point, layout);
                         lose_node(scene.job, lost);
                         EXPECT_EQ(joined(check_after_loss(scene.job, ledger)), "") << "node " << lost << " was lost";
                       });
    if (HasFailure()) return;
  }
}

/// Other sets than before: protected at every instant, by the old ones or the new.
TEST_P(RedundancyCrashPoints, ADeathDuringProtectionInOtherSetsLosesNothing) {
  const Layout& layout = GetParam();
  Scene scene(layout);
  scene.job.options.redundancy.scheme = layout.scheme == Scheme::xor_ ? Scheme::partner : Scheme::xor_;
  at_every_operation(
      compose("other sets, {}", layout.name), scene, 5, true,
      [&](const Point& point, const Ledger& ledger) { expect_same_also_without_a_node(scene, point, ledger); });
}

/// Whatever a death left is what the next start dies on; a node is lost at the end, or none.
TEST_P(RedundancyCrashPoints, ADeathInEachStartOneAfterTheOtherLosesNothing) {
  const Layout& layout = GetParam();
  const unsigned seeds = full_test() ? 500 : 4;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    std::mt19937 random(seed);
    SimulatedJob job(layout.ranks);
    use(job, layout);
    Ledger ledger;
    std::string trace;
    for (int start = 0; start < 6; ++start) {
      const Point point{static_cast<int>(random() % static_cast<unsigned>(layout.ranks)), 1 + random() % 90,
                        random() % 2 == 0};
      trace += compose(" {},", describe(point));
      plan(job, point);
      const auto outcomes = job.start([&](RankScope& scope) { run_application(scope, 3, ledger, false); });
      ASSERT_EQ(joined(check_survivors(outcomes, point.together ? -1 : point.rank)), "") << "died:" << trace;
      ASSERT_EQ(joined(half_made_set_files(job)), "") << "died:" << trace;
      ASSERT_EQ(joined(too_many_set_files(job, 4)), "") << "died:" << trace;
    }
    if (seed % 2 == 0) lose_node(job, static_cast<int>(seed / 2 % static_cast<unsigned>(layout.nodes())));
    ASSERT_EQ(joined(check_after_loss(job, ledger)), "") << "seed " << seed << ", died:" << trace;
    ASSERT_EQ(joined(too_many_set_files(job, 2)), "") << "seed " << seed << ", died:" << trace;
  }
}

/// A death in protect left the newest commit without: until it is protected, the one before is not given up.
TEST_P(RedundancyCrashPoints, ADeathDuringTheProtectionOfAnOpenedCommitLosesNothing) {
  const Layout& layout = GetParam();
  Scene scene(layout);
  scene.commit_unprotected();
  at_every_operation(
      compose("local commit, {}", layout.name), scene, 6, true,
      [&](const Point& point, const Ledger& ledger) { expect_same_also_without_a_node(scene, point, ledger); });
}

/// Start after start dies in re-protection and leaves some of it sealed: that must not add up.
TEST_P(RedundancyCrashPoints, DeathsInReProtectionDoNotFillTheStore) {
  const Layout& layout = GetParam();
  Scene scene(layout);
  scene.job.options.redundancy.scheme = layout.scheme == Scheme::xor_ ? Scheme::partner : Scheme::xor_;
  scene.keep_as_it_is();
  Ledger undisturbed;
  for (const auto& outcome : open_once(scene.job, undisturbed)) ASSERT_TRUE(outcome.returned());
  for (const Point& point :
       points(compose("again and again, {}", layout.name), scene.job.operations, 9, Deaths::alone)) {
    scene.restore();
    Ledger ledger;
    know_steps(ledger, scene, true);
    for (int start = 0; start < 5; ++start) {
      plan(scene.job, point);
      (void)open_once(scene.job, ledger);
    }
    EXPECT_EQ(joined(too_many_set_files(scene.job, 3)), "") << describe(point);
    lose_node(scene.job, some_node(point, layout));
    ASSERT_EQ(joined(check_after_loss(scene.job, ledger)), "") << describe(point);
  }
}

INSTANTIATE_TEST_SUITE_P(LayoutPolicy, RedundancyCrashPoints,
                         testing::Values(kXor, kPartner, kPairs, kTwoOnANode, kReedSolomon),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kedge::faults::redundancy_crash_points_test
