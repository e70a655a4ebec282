// What one rank throws during a collective call and is not an Error, as for lack of memory, is one error on all ranks,
// and none waits for its deadline. No vote sees such an exception.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/throwing_communicator.hpp"

namespace kedge::faults::foreign_exceptions_test {
namespace {

constexpr int kRanks = 3;
constexpr int kFailing = 1;

void live(RankScope& scope) {
  Engine engine = scope.make_engine();
  std::vector<double> x(100, scope.rank);
  State state;
  state.add("x", x);
  (void)engine.restore(state);
  for (const char* tag : {"a", "b"}) {
    (void)engine.need_checkpoint();
    engine.checkpoint(tag, state);
  }
  EXPECT_EQ(engine.restore(state), "b");
  engine.finalize();
}

/// Whether the call that was planned came. `untold` is how many ranks heard of nothing.
bool expect_one_error(bool starts_again, int call, bool afterwards, int* untold) {
  SimulatedJob job(kRanks);
  job.options.pipeline.mode = PipelineMode::inline_;
  job.options.persistent.every = 1;
  if (starts_again) expect_returned(job.start(live));
  auto plan =
      std::make_shared<testing::ThrowingCommunicator::Plan>(testing::ThrowingCommunicator::Plan{call, afterwards});
  job.in_front = [&](int rank, std::unique_ptr<Communicator> own) -> std::unique_ptr<Communicator> {
    if (rank != kFailing) return own;
    return std::make_unique<testing::ThrowingCommunicator>(std::move(own), plan);
  };
  std::vector<std::optional<Failure>> met(kRanks);
  job.start([&](RankScope& scope) { met[static_cast<std::size_t>(scope.rank)] = failure_of([&] { live(scope); }); });
  if (!plan->has_thrown) return false;
  const Failure failure = met[kFailing].value_or(Failure{});
  EXPECT_EQ(failure.code, ErrorCode::rank_failed) << to_string(failure);
  EXPECT_THAT(failure.message, ::testing::HasSubstr("rank 1 failed during a call: "));
  for (const auto& other : met) {
    if (!other) ++*untold;
    else EXPECT_EQ(text_of(other), text_of(failure));
  }
  job.in_front = {};
  expect_returned(job.start(live));  // nothing that was committed is lost, and no lock is left
  return true;
}

TEST(ForeignExceptions, AtEachMessageOfOneRankAreOneErrorOnAll) {
  for (const bool starts_again : {false, true}) {
    for (const bool afterwards : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "again " << starts_again << ", afterwards " << afterwards);
      int call = 1;
      const int step = (starts_again ? 5 : 1) * (afterwards ? 3 : 2);
      int untold = 0;
      while (!HasFailure() && expect_one_error(starts_again, call, afterwards, &untold)) call += step;
      EXPECT_GT(call, 100);
      // Who has all that it waits for in the last call of finalize hears of nothing any more.
      EXPECT_LE(untold, afterwards ? kRanks - 1 : 0);
    }
  }
}

}  // namespace
}  // namespace kedge::faults::foreign_exceptions_test
