// Every message of open, create and both votes of commit is a point at which one rank dies or stops answering: all
// ranks or none commit, waits are bounded, and an engine in doubt leaves its seals where they are.
#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>
#include <optional>

#include "base/attempt.hpp"
#include "harness/full_test.hpp"
#include "harness/history.hpp"

namespace kedge::faults::vote_messages_test {
namespace {

// The smallest tree with a rank that receives from one and forwards to another: 3 is below 2, 2 below 0.
constexpr int kRanks = 4;
constexpr std::uint64_t kMoreThanThereAre = 10000;

/// Without KEDGE_TEST_FULL one message in three, of each rank others.
std::uint64_t stride() { return full_test() ? 1 : 3; }

class VoteMessages : public testing::TestWithParam<testing::StopKind> {
 protected:
  /// False if the start ended before the rank came to this event.
  [[nodiscard]] static bool stops_and_recovers(int rank, std::uint64_t event, testing::StopKind kind, int& in_doubt) {
    SimulatedJob job(kRanks);
    // Two pairs on two nodes, else: messages of protection have a test of their own.
    if (!full_test()) job.options.redundancy.scheme = Scheme::single;
    Ledger ledger;
    (void)job.start([&](RankScope& scope) { run_application(scope, 1, ledger, false); });
    EXPECT_EQ(ledger.newest_returned(), 1);

    job.plan = [&](testing::InProcessWorld& world) { world.stop_at(rank, event, kind); };
    const auto outcomes = job.start([&](RankScope& scope) { run_application(scope, 1, ledger, false); });
    const bool died = outcomes[static_cast<std::size_t>(rank)].died;
    if (ledger.newest_begun() > ledger.newest_returned()) ++in_doubt;
    EXPECT_EQ(joined(check_survivors(outcomes, rank)) + joined(check_after_crash(job, ledger)), "")
        << "rank " << rank << ", event " << event;
    return died;
  }
};

TEST_P(VoteMessages, NoMessageIsOneTooFew) {
  std::uint64_t points = 0;
  int in_doubt = 0;
  const int shift = GetParam() == testing::StopKind::die ? 0 : 1;  // not the same sample for both
  for (int rank = 0; rank < kRanks; ++rank) {
    std::uint64_t event = static_cast<std::uint64_t>(rank + shift) % stride();
    while (event < kMoreThanThereAre && !HasFailure() && stops_and_recovers(rank, event, GetParam(), in_doubt)) {
      event += stride();
      ++points;
    }
    if (HasFailure()) return;
    EXPECT_GT(event, 20U) << "a start has more messages than that";
    std::cout << "messages of rank " << rank << ": " << event << '\n';
  }
  std::cout << points << " points, " << in_doubt << " of them in a checkpoint\n";
  EXPECT_GT(in_doubt, full_test() ? 20 : 5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, VoteMessages, testing::Values(testing::StopKind::die, testing::StopKind::stop),
                         [](const auto& tested) { return tested.param == testing::StopKind::die ? "die" : "stop"; });

/// Rank 1's last operation in its second checkpoint: nothing is left to do after the seal.
std::uint64_t seal_operation() {
  SimulatedJob job(kRanks);
  job.options.pipeline.mode = PipelineMode::inline_;  // a worker's operations come at any time
  job.options.redundancy.scheme = Scheme::single;
  Ledger ledger;
  std::uint64_t operations = 0;
  (void)job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    checkpoint(engine, scope.rank, 1, ledger);
    const auto begin = job.disk.operations(scope.rank);
    checkpoint(engine, scope.rank, 2, ledger);
    if (scope.rank == 1) operations = job.disk.operations(1) - begin;
  });
  return operations;
}

/// The seal of one rank fails, and another stops while the ranks tell each other so.
TEST(VoteMessages, AFailedSealAndARankThatStopsFailOnAllRanks) {
  const std::uint64_t seal = seal_operation();
  int threw = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    bool died = true;
    for (auto event = static_cast<std::uint64_t>(rank) % stride(); died && event < kMoreThanThereAre;
         event += stride()) {
      SimulatedJob job(kRanks);
      job.options.pipeline.mode = PipelineMode::inline_;  // as where the seal was found
      job.options.redundancy.scheme = Scheme::single;
      Ledger ledger;
      job.plan = [&](testing::InProcessWorld& world) { world.stop_at(rank, event, testing::StopKind::stop); };
      std::vector<std::optional<Failure>> failures(kRanks);
      const auto outcomes = job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        checkpoint(engine, scope.rank, 1, ledger);
        const auto begin = job.disk.operations(scope.rank);
        if (scope.rank == 1) job.disk.fail(1, begin + seal, EIO);
        auto& failure = failures[static_cast<std::size_t>(scope.rank)];
        failure = attempt([&] { checkpoint(engine, scope.rank, 2, ledger); });
      });
      died = outcomes[static_cast<std::size_t>(rank)].died;
      ledger.failed(2);  // rank 1 has no seal: the commit cannot be whole
      for (const auto& failure : failures) {
        if (!failure || failure->code == ErrorCode::timeout) continue;
        EXPECT_EQ(failure->code, ErrorCode::io) << to_string(*failure);
        EXPECT_EQ(failure->rank, 1);
        ++threw;
      }
      ASSERT_EQ(joined(check_after_crash(job, ledger)), "") << "rank " << rank << ", event " << event;
    }
  }
  EXPECT_GT(threw, kRanks);
}

/// The last message of the second vote: one rank has returned, the others have not and leave their seals.
TEST(VoteMessages, CommitInDoubtIsWholeOrNotOffered) {
  int whole = 0;
  int not_offered = 0;
  for (std::uint64_t event = 0; event < kMoreThanThereAre; ++event) {
    SimulatedJob job(kRanks);
    Ledger ledger;
    job.plan = [&](testing::InProcessWorld& world) { world.stop_at(2, event, testing::StopKind::stop); };
    const auto outcomes = job.start([&](RankScope& scope) { run_application(scope, 1, ledger, false); });
    if (!outcomes[2].died) break;
    Ledger after;
    int opened = -1;
    (void)job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const int step = open_and_check(engine, scope.rank, after);
      if (scope.rank == 0) opened = step;
    });
    ASSERT_EQ(joined(after.problems()), "") << "event " << event;
    ASSERT_TRUE(ledger.may_be_opened(opened)) << "event " << event << ", opened " << opened;
    if (ledger.newest_begun() == 1 && ledger.newest_returned() == 0) ++(opened == 1 ? whole : not_offered);
  }
  EXPECT_GT(whole, 0) << "no event fell between the seals and the end of the vote";
  EXPECT_GT(not_offered, 0);
}

}  // namespace
}  // namespace kedge::faults::vote_messages_test
