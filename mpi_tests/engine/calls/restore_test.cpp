// restore, and checkpoint of a State, as a whole: what a death in the middle of it leaves behind.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults::restore_test {
namespace {

/// One start that saves a state and restores a part of it, or does as much of this as asked; rank 1 dies at this event.
/// Whether a rank met a timeout; its engine must be dead then. Sets `events` to those of rank 1.
enum class Until { opened, saved, restored };
bool run_while_rank_1_dies(Until until, std::uint64_t event, std::uint64_t& events) {
  SimulatedJob job(2);
  job.plan = [&](testing::InProcessWorld& world) { world.stop_at(1, event, testing::StopKind::stop); };
  bool timeout_error = false;
  job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    if (until == Until::opened) return;
    std::vector<double> values(4, scope.rank);
    double unread = 1;
    auto failure = failure_of([&] { engine.checkpoint("a", State().add("values", values).add("unread", unread)); });
    if (!failure && until == Until::restored) {
      failure = failure_of([&] { (void)engine.restore(State().add("values", values)); });
    }
    if (!failure || failure->code != ErrorCode::timeout) return;
    timeout_error = true;
    // bad_state alone could also come from the communicator, or mean a call out of order.
    const Failure next = failure_of([&] { (void)engine.need_checkpoint(); }).value_or(Failure{});
    EXPECT_EQ(next.code, ErrorCode::bad_state) << to_string(next);
    EXPECT_NE(next.message.find("this engine is dead"), std::string::npos) << next.message;
  });
  events = job.events[1];
  return timeout_error;
}

/// Whoever waited in vain knows nothing of the others any more, wherever in the call that was.
void expect_dead_engines_between(Until first, Until last) {
  std::uint64_t begun = 0;
  std::uint64_t all = 0;
  EXPECT_FALSE(run_while_rank_1_dies(first, UINT64_MAX, begun));
  EXPECT_FALSE(run_while_rank_1_dies(last, UINT64_MAX, all));
  ASSERT_GT(all, begun + 5);
  std::uint64_t ignored = 0;
  std::uint64_t timeouts = 0;
  for (std::uint64_t event = begun; event < all; ++event) {
    SCOPED_TRACE(event);
    if (run_while_rank_1_dies(last, event, ignored)) ++timeouts;
  }
  EXPECT_GT(timeouts, (all - begun) / 2) << "for the last messages of rank 1 nobody waits";
}

TEST(RestoreTest, ARankThatDiesAnywhereInItLeavesADeadEngine) {
  expect_dead_engines_between(Until::saved, Until::restored);
}

TEST(RestoreTest, ARankThatDiesWhileAStateIsSavedLeavesADeadEngine) {
  expect_dead_engines_between(Until::opened, Until::saved);
}

}  // namespace
}  // namespace kedge::faults::restore_test
