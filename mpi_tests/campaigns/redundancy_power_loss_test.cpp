// store.durable on block storage with redundancy: the power fails at every operation, then a node may be lost, and what
// was protected is there.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "harness/full_test.hpp"
#include "harness/redundancy_history.hpp"

namespace kedge::faults::redundancy_power_loss_test {
namespace {

constexpr int kSteps = 2;

enum class Scene : std::uint8_t { new_job, node_lost, moved, other_sets };

struct Case {
  std::string name;
  Scene scene = Scene::new_job;
  Scheme scheme = Scheme::xor_;
  friend void PrintTo(const Case& tested, std::ostream* stream) { *stream << tested.name; }
};

class RedundancyPowerLoss : public testing::TestWithParam<Case> {
 protected:
  static void prepare(SimulatedJob& job, const Layout& layout, Ledger& ledger) {
    use(job, layout);
    job.options.store.durable = true;
    if (GetParam().scene == Scene::new_job) return;
    (void)job.start([&](RankScope& scope) { run_application(scope, kSteps, ledger, false); });
    ASSERT_EQ(ledger.newest_protected(), kSteps);
    if (GetParam().scene == Scene::node_lost) lose_node(job, 0);
    if (GetParam().scene == Scene::moved) job.nodes = other_nodes(layout);
    if (GetParam().scene == Scene::other_sets) {
      job.options.redundancy.scheme = layout.scheme == Scheme::xor_ ? Scheme::partner : Scheme::xor_;
    }
  }
};

TEST_P(RedundancyPowerLoss, WhatWasPromisedIsOnStableStorage) {
  const Case& tested = GetParam();
  const Layout layout{.name = tested.name, .scheme = tested.scheme, .ranks = 3};
  SimulatedJob job(layout.ranks, SimulatedJob::block_disk());
  Ledger prepared;
  prepare(job, layout, prepared);
  const auto before = job.disk.snapshot();
  const int had = prepared.newest_returned();
  const auto run = [&](Ledger& ledger, std::uint64_t seed) {
    if (had != 0) {
      ledger.begun(had);
      ledger.returned(had);
      ledger.is_protected(had);
    }
    return job.start([&](RankScope& scope) { run_application(scope, had == 0 ? 3 : 1, ledger, false); }, Crash::power,
                     seed);
  };
  for (std::uint64_t seed = 1; seed <= (full_test() ? 3 : 1); ++seed) {
    job.disk.restore(before);
    Ledger undisturbed;
    for (const auto& outcome : run(undisturbed, seed)) ASSERT_TRUE(outcome.returned());
    auto chosen = points(compose("{}, {}", tested.name, seed), job.operations, 5, Deaths::together);
    chosen.push_back({0, 100000, true});  // right after the last commit: that is where a missing sync shows
    for (const Point& point : chosen) {
      job.disk.restore(before);
      Ledger ledger;
      plan(job, point);
      const auto outcomes = run(ledger, seed + point.n);
      ASSERT_EQ(joined(check_survivors(outcomes, -1)), "") << describe(point);
      const auto off = job.disk.snapshot();
      ASSERT_EQ(joined(check_nothing_lost(job, ledger)), "") << describe(point) << ", seed " << seed;
      if (tested.scene == Scene::node_lost && ledger.newest_protected() <= had) continue;  // it would be the second
      for (int lost = 0; lost < layout.nodes(); ++lost) {
        job.disk.restore(off);
        lose_node(job, lost);
        ASSERT_EQ(joined(check_after_loss(job, ledger)), "")
            << describe(point) << ", seed " << seed << ", then node " << lost << " was lost";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, RedundancyPowerLoss,
                         testing::Values(Case{"xor_new_job", Scene::new_job, Scheme::xor_},
                                         Case{"partner_new_job", Scene::new_job, Scheme::partner},
                                         Case{"xor_node_lost", Scene::node_lost, Scheme::xor_},
                                         Case{"partner_moved", Scene::moved, Scheme::partner},
                                         Case{"xor_other_sets", Scene::other_sets, Scheme::xor_}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kedge::faults::redundancy_power_loss_test
