// Every message of protect, rebuild, relocation and re-protection is a point at which one rank dies or stops answering:
// the others' waits are bounded, and nothing is lost.
#include <gtest/gtest.h>

#include <array>
#include <iostream>

#include "base/text.hpp"
#include "harness/full_test.hpp"
#include "harness/redundancy_history.hpp"

namespace kedge::faults::redundancy_messages_test {
namespace {

constexpr int kSteps = 2;  ///< committed and protected before the start that is disturbed

/// What that start finds.
enum class Scene : std::uint8_t { in_place, node_lost, moved, other_sets };

struct Case {
  Layout layout;
  Scene scene = Scene::in_place;
  testing::StopKind kind = testing::StopKind::die;
  std::size_t more_bytes = 0;  ///< rank 0 saves so many more, rank 1 twice as many: containers of many pieces
  friend void PrintTo(const Case& tested, std::ostream* stream) { *stream << name_of(tested); }
  static std::string name_of(const Case& tested) {
    static constexpr std::array kScenes{"in_place", "node_lost", "moved", "other_sets"};
    return compose("{}{}_{}_{}", tested.more_bytes == 0 ? "" : "large_", tested.layout.name,
                   kScenes.at(static_cast<std::size_t>(tested.scene)),
                   tested.kind == testing::StopKind::die ? "die" : "stop");
  }
};

class RedundancyMessages : public testing::TestWithParam<Case> {
 protected:
  static void open_and_commit(RankScope& scope, int count, Ledger& ledger) {
    Engine engine = scope.make_engine();
    int step = open_and_check(engine, scope.rank, ledger);
    const std::size_t more_bytes = GetParam().more_bytes * (static_cast<std::size_t>(scope.rank) + 1);
    for (int i = 0; i < count; ++i) checkpoint(engine, scope.rank, ++step, ledger, more_bytes);
  }

  static void prepare(SimulatedJob& job) {
    const Case& tested = GetParam();
    use(job, tested.layout);
    Ledger ledger;
    (void)job.start([&](RankScope& scope) { open_and_commit(scope, kSteps, ledger); });
    ASSERT_EQ(ledger.newest_protected(), kSteps);
    if (tested.scene == Scene::node_lost) lose_node(job, 1);
    if (tested.scene == Scene::moved) job.nodes = other_nodes(tested.layout);
    if (tested.scene == Scene::other_sets) {
      job.options.redundancy.scheme = tested.layout.scheme == Scheme::xor_ ? Scheme::partner : Scheme::xor_;
    }
  }

  static std::vector<testing::RankOutcome> run(SimulatedJob& job, Ledger& ledger) {
    ledger.begun(kSteps);
    ledger.returned(kSteps);
    ledger.is_protected(kSteps);
    return job.start([&](RankScope& scope) { open_and_commit(scope, 1, ledger); });
  }
};

TEST_P(RedundancyMessages, NoMessageIsOneTooFew) {
  const Case& tested = GetParam();
  SimulatedJob job(tested.layout.ranks);
  prepare(job);
  const auto before = job.disk.snapshot();
  Ledger undisturbed;
  for (const auto& outcome : run(job, undisturbed)) ASSERT_TRUE(outcome.returned());
  ASSERT_EQ(undisturbed.newest_protected(), kSteps + 1);
  int in_doubt = 0;
  for (const Point& point :
       points(Case::name_of(tested), job.events, tested.more_bytes == 0 ? 60 : 150, Deaths::alone)) {
    job.disk.restore(before);
    Ledger ledger;
    job.plan = [&](testing::InProcessWorld& world) { world.stop_at(point.rank, point.n - 1, tested.kind); };
    const auto outcomes = run(job, ledger);
    if (ledger.newest_begun() > ledger.newest_protected()) ++in_doubt;
    ASSERT_EQ(joined(check_survivors(outcomes, point.rank)), "") << "rank " << point.rank << ", event " << point.n - 1;
    const auto stopped = job.disk.snapshot();
    ASSERT_EQ(joined(check_nothing_lost(job, ledger)), "") << "rank " << point.rank << ", event " << point.n - 1;
    ASSERT_EQ(joined(too_many_set_files(job, 2)), "") << "rank " << point.rank << ", event " << point.n - 1;
    if (tested.scene == Scene::node_lost && ledger.newest_protected() <= kSteps) continue;  // that would be the second
    job.disk.restore(stopped);
    const int lost = some_node(point, tested.layout);
    lose_node(job, lost);
    ASSERT_EQ(joined(check_after_loss(job, ledger)), "")
        << "rank " << point.rank << ", event " << point.n - 1 << ", then node " << lost << " was lost";
  }
  std::cout << in_doubt << " of them in a checkpoint\n";
  EXPECT_TRUE(in_doubt > 0 || !full_test());
}

std::vector<Case> cases() {
  const Layout kXor{.name = "xor", .scheme = Scheme::xor_, .ranks = 3};
  const Layout kPairs{.name = "pairs", .scheme = Scheme::partner, .ranks = 4};
  std::vector<Case> all;
  for (const Layout& layout : {kXor, kPairs}) {
    for (const Scene scene : {Scene::in_place, Scene::node_lost, Scene::moved, Scene::other_sets}) {
      for (const testing::StopKind kind : {testing::StopKind::die, testing::StopKind::stop})
        all.push_back({layout, scene, kind});
    }
  }
  const Layout kReedSolomon{.name = "rs", .scheme = Scheme::rs, .ranks = 4};
  for (const Scene scene : {Scene::in_place, Scene::node_lost})
    all.push_back({kReedSolomon, scene, testing::StopKind::die});
  for (const Scene scene : {Scene::node_lost, Scene::moved}) {
    all.push_back({kXor, scene, testing::StopKind::die, std::size_t{2} << 20U});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, RedundancyMessages, testing::ValuesIn(cases()),
                         [](const auto& tested) { return Case::name_of(tested.param); });

}  // namespace
}  // namespace kedge::faults::redundancy_messages_test
