// restore as a whole: what a death in the middle of it leaves behind.
#include <gtest/gtest.h>

#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults {
namespace {

/// One start that saves a state and, if asked to, restores a part of it; rank 1 dies at this event. Whether a rank met
/// a timeout; its engine must be dead then. Sets `events` to those of rank 1.
bool restore_while_rank_1_dies(bool restores, std::uint64_t event, std::uint64_t& events) {
  SimulatedJob job(2);
  job.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, event, testing::StopKind::stop); };
  bool timed_out = false;
  job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> values(4, scope.rank);
    double unread = 1;
    engine.checkpoint("a", State().add("values", values).add("unread", unread));
    if (!restores) return;
    const auto failure = failure_of([&] { (void)engine.restore(State().add("values", values)); });
    if (!failure || failure->code != ErrorCode::timeout) return;
    timed_out = true;
    const auto next = failure_of([&] { (void)engine.need_checkpoint(); });
    EXPECT_TRUE(next && next->code == ErrorCode::bad_state) << to_string(next.value_or(Failure{}));
  });
  events = job.events[1];
  return timed_out;
}

/// Whoever waited in vain knows nothing of the others any more, wherever in restore that was.
TEST(RestoreTest, ARankThatDiesAnywhereInItLeavesADeadEngine) {
  std::uint64_t begun = 0;
  std::uint64_t all = 0;
  EXPECT_FALSE(restore_while_rank_1_dies(false, UINT64_MAX, begun));
  EXPECT_FALSE(restore_while_rank_1_dies(true, UINT64_MAX, all));
  ASSERT_GT(all, begun + 5);
  std::uint64_t ignored = 0;
  std::uint64_t timeouts = 0;
  for (std::uint64_t event = begun; event < all; ++event) {
    SCOPED_TRACE(event);
    if (restore_while_rank_1_dies(true, event, ignored)) ++timeouts;
  }
  EXPECT_GT(timeouts, (all - begun) / 2) << "for the last messages of rank 1 nobody waits";
}

}  // namespace
}  // namespace kedge::faults
