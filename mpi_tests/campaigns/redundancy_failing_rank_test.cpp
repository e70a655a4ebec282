// One rank's storage fails somewhere in protect or in recovery: all ranks see the same, nothing is lost, and what comes
// next is protected again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <optional>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/redundancy_history.hpp"

namespace kedge::faults::redundancy_failing_rank_test {
namespace {

constexpr int kSteps = 3;
constexpr std::uint64_t kLasting = 80;  // more operations than a checkpoint or an open has

struct Fault {
  int rank = 0;
  std::uint64_t n = 0;  ///< counted from where the disturbed call begins
  int system_errno = EIO;
  std::uint64_t in_a_row = 1;
  bool read = false;
};

std::string describe(const Fault& fault) {
  return compose("rank {}, {} {} fails with errno {}, {} in a row", fault.rank, fault.read ? "read" : "operation",
                 fault.n, fault.system_errno, fault.in_a_row);
}

struct Case {
  std::string name;
  Layout layout;
  bool memory = true;
  friend void PrintTo(const Case& tested, std::ostream* stream) { *stream << tested.name; }
};

/// What each rank met in the disturbed call.
struct Met {
  std::optional<Failure> failure;
  Level level = Level::none;
  int step = 0;
  bool operator==(const Met& other) const {
    return failure.has_value() == other.failure.has_value() &&
           (!failure || to_string(*failure) == to_string(*other.failure)) && level == other.level && step == other.step;
  }
  friend void PrintTo(const Met& met, std::ostream* stream) {
    *stream << (met.failure ? to_string(*met.failure) : "success") << ", level " << to_string(met.level) << ", step "
            << met.step;
  }
};

class RedundancyFailingRank : public testing::TestWithParam<Case> {
 protected:
  RedundancyFailingRank() : job_(layout().ranks, disk_options()), met_(static_cast<std::size_t>(layout().ranks)) {
    use(job_, layout());
    job_.options.store.durable = !GetParam().memory;
    Ledger ledger;
    (void)job_.start([&](RankScope& scope) { run_application(scope, kSteps, ledger, false); });
    EXPECT_EQ(ledger.newest_protected(), kSteps);
  }

  static const Layout& layout() { return GetParam().layout; }
  static DiskOptions disk_options() {
    return GetParam().memory ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }

  void plan(const Fault& fault) {
    const std::uint64_t begin = fault.read ? job_.disk.reads(fault.rank) : job_.disk.operations(fault.rank);
    for (std::uint64_t n = begin + fault.n; n < begin + fault.n + fault.in_a_row; ++n) {
      if (fault.read) job_.disk.fail_read(fault.rank, n, fault.system_errno);
      else job_.disk.fail(fault.rank, n, fault.system_errno);
    }
  }

  static void know_steps(Ledger& ledger) {
    ledger.begun(kSteps);
    ledger.returned(kSteps);
    ledger.is_protected(kSteps);
  }

  /// Opens and commits one more, of which the storage of one rank fails; then, if asked to, goes on.
  void run_protect(const Fault& fault, bool goes_on, Ledger& ledger) {
    know_steps(ledger);
    const auto outcomes = job_.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)open_and_check(engine, scope.rank, ledger);
      checkpoint(engine, scope.rank, kSteps + 1, ledger);  // so that files are reused
      Met& met = met_[static_cast<std::size_t>(scope.rank)];
      if (scope.rank == fault.rank) plan(fault);
      met.failure = attempt([&] { checkpoint(engine, scope.rank, kSteps + 2, ledger); });
      if (scope.rank == fault.rank) job_.disk.heal(fault.rank);
      met.level = engine.level(compose("step-{}", kSteps + 2));
      if (met.failure) ledger.failed(kSteps + 2);
      if (!goes_on) return;
      checkpoint(engine, scope.rank, kSteps + 3, ledger);
      EXPECT_EQ(engine.level(compose("step-{}", kSteps + 3)), Level::protected_);
      EXPECT_EQ(open_and_check(engine, scope.rank, ledger), kSteps + 3);
      // Nothing leaks: the kept ones and one to write into, of every kind.
      checkpoint(engine, scope.rank, kSteps + 4, ledger);
    });
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.returned());
    for (const Met& met : met_) EXPECT_EQ(met, met_[0]);
  }

  void check_counts(std::size_t at_most) {
    EXPECT_EQ(joined(too_many_set_files(job_, at_most)), "");
    // With a worker as many are made ready as may be under way at once.
    const Options::Pipeline& pipeline = job_.options.pipeline;
    const std::size_t more = pipeline.mode == PipelineMode::background ? pipeline.max_pending - 1 : 0;
    for (int rank = 0; rank < job_.ranks; ++rank) EXPECT_LE(container_files(job_.disk, rank).size(), at_most + more);
  }

  /// The start's open fails on one rank and is called again when that is healed.
  void run_open(const Fault& fault, Ledger& ledger) {
    know_steps(ledger);
    const auto outcomes = job_.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Met& met = met_[static_cast<std::size_t>(scope.rank)];
      if (scope.rank == fault.rank) plan(fault);
      Ledger disturbed;  // a load may be what fails; then close has thrown as well
      met.failure = attempt([&] { met.step = open_and_check(engine, scope.rank, disturbed); });
      EXPECT_TRUE(met.failure || disturbed.problems().empty()) << joined(disturbed.problems());
      if (scope.rank == fault.rank) job_.disk.heal(fault.rank);
      met.level = engine.level(compose("step-{}", kSteps));
      // A commit that could not be recovered twice is not tried again by this engine.
      if (met.failure && (fault.in_a_row > 1 || met.failure->code == ErrorCode::unrecoverable)) return;
      if (met.failure) {
        EXPECT_EQ(open_and_check(engine, scope.rank, ledger), kSteps) << to_string(*met.failure);
      }
      checkpoint(engine, scope.rank, kSteps + 1, ledger);
      EXPECT_EQ(engine.level(compose("step-{}", kSteps + 1)), Level::protected_);
    });
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.returned());
    for (const Met& met : met_) EXPECT_EQ(met, met_[0]);
    if (met_[0].failure || met_[0].step == kSteps) return;
    // What cannot be read counts as lost, beside the node: then the one before is opened, and a line says so.
    EXPECT_TRUE(fault.read && lost_ && met_[0].step == kSteps - 1) << met_[0].step;
    EXPECT_TRUE(job_.logged(compose("skipped step-{}", kSteps)));
  }

  void protect_at_every_operation(int system_errno, std::uint64_t in_a_row, bool read);
  void open_at_every_operation(std::string_view what, int system_errno, std::uint64_t in_a_row, bool read);

  [[nodiscard]] std::vector<std::uint64_t> counts(bool read) const {
    std::vector<std::uint64_t> counts;
    counts.reserve(static_cast<std::size_t>(job_.ranks));
    for (int rank = 0; rank < job_.ranks; ++rank) {
      counts.push_back(read ? job_.disk.reads(rank) : job_.disk.operations(rank));
    }
    return counts;
  }

  void lose(int node) {
    lost_ = true;
    lose_node(job_, node);
  }

  SimulatedJob job_;
  std::vector<Met> met_;
  bool lost_ = false;  ///< a node, before the disturbed open
};

constexpr std::uint64_t kOperationsOfACheckpoint = 36;
constexpr std::uint64_t kOperationsOfAnOpen = 30;
constexpr std::uint64_t kOneIn = 14;

void RedundancyFailingRank::protect_at_every_operation(int system_errno, std::uint64_t in_a_row, bool read) {
  const auto before = job_.disk.snapshot();
  const std::vector<std::uint64_t> most(static_cast<std::size_t>(job_.ranks), kOperationsOfACheckpoint);
  int threw = 0;
  int local = 0;
  for (const Point& point : points(compose("protect, {}", GetParam().name), most, kOneIn / 2)) {
    const Fault fault{point.rank, point.n, system_errno, in_a_row, read};
    SCOPED_TRACE(describe(fault));
    job_.disk.restore(before);
    Ledger ledger;
    run_protect(fault, point.together, ledger);
    if (met_[0].failure) {
      ++threw;
      EXPECT_EQ(met_[0].failure->rank, fault.rank) << to_string(*met_[0].failure);
    } else if (met_[0].level == Level::local) {
      ++local;
    }
    check_counts(point.together ? 2 : 3);
    const auto after = job_.disk.snapshot();
    EXPECT_EQ(joined(check_nothing_lost(job_, ledger)), "");
    job_.disk.restore(after);
    lose_node(job_, some_node(point, layout()));
    EXPECT_EQ(joined(check_after_loss(job_, ledger)), "");
    if (HasFailure()) return;
  }
  std::cout << threw << " commits threw, " << local << " stayed local\n";
  EXPECT_GT(local, 0);
}

void RedundancyFailingRank::open_at_every_operation(std::string_view what, int system_errno, std::uint64_t in_a_row,
                                                    bool read) {
  const auto before = job_.disk.snapshot();
  const std::vector<std::uint64_t> most(static_cast<std::size_t>(job_.ranks), kOperationsOfAnOpen);
  int threw = 0;
  int local = 0;
  for (const Point& point : points(compose("{}, {}", what, GetParam().name), most, kOneIn, Deaths::alone)) {
    const Fault fault{point.rank, point.n, system_errno, in_a_row, read};
    SCOPED_TRACE(describe(fault));
    job_.disk.restore(before);
    Ledger ledger;
    run_open(fault, ledger);
    if (met_[0].failure) ++threw;
    else if (met_[0].level == Level::local) ++local;
    EXPECT_EQ(joined(check_nothing_lost(job_, ledger)), "");
    EXPECT_EQ(joined(too_many_set_files(job_, 3)), "");
    if (HasFailure()) return;
  }
  std::cout << threw << " opens threw, " << local << " were left unprotected\n";
}

TEST_P(RedundancyFailingRank, ProtectWithAnIoError) { protect_at_every_operation(EIO, 1, false); }
TEST_P(RedundancyFailingRank, ProtectOnAFullStore) { protect_at_every_operation(ENOSPC, 1, false); }
/// The second error meets the clean-up after the first.
TEST_P(RedundancyFailingRank, ProtectWithTwoIoErrors) { protect_at_every_operation(EIO, 2, false); }
TEST_P(RedundancyFailingRank, ProtectOnABrokenDisk) { protect_at_every_operation(EIO, kLasting, false); }

TEST_P(RedundancyFailingRank, RebuildWithAnIoError) {
  lose(1);
  open_at_every_operation("rebuild", EIO, 1, false);
}
TEST_P(RedundancyFailingRank, RebuildOnAFullStore) {
  lose(1);
  open_at_every_operation("rebuild", ENOSPC, 1, false);
}
TEST_P(RedundancyFailingRank, RebuildOnABrokenDisk) {
  lose(1);
  open_at_every_operation("rebuild", EIO, kLasting, false);
}
TEST_P(RedundancyFailingRank, RebuildWithAReadError) {
  lose(1);
  open_at_every_operation("rebuild, reads", EIO, 1, true);
}
TEST_P(RedundancyFailingRank, OpenWithAReadError) { open_at_every_operation("open, reads", EIO, 1, true); }
TEST_P(RedundancyFailingRank, RelocationWithAnIoError) {
  job_.nodes = other_nodes(layout());
  open_at_every_operation("relocation", EIO, 1, false);
}
TEST_P(RedundancyFailingRank, RelocationOnAFullStore) {
  job_.nodes = other_nodes(layout());
  open_at_every_operation("relocation", ENOSPC, 1, false);
}

/// Members of one set come together on a node and are protected anew. If there is no room for that beside what they
/// left behind, that goes, and protection is tried again.
TEST(RedundancySpace, WhatWasLeftBehindMakesRoomForNewProtection) {
  const Layout layout{.name = "two", .scheme = Scheme::xor_, .ranks = 6, .ranks_per_node = 2};
  SimulatedJob job(layout.ranks);
  use(job, layout);
  Ledger ledger;
  (void)job.start([&](RankScope& scope) { run_application(scope, 2, ledger, false); });
  const auto before = job.disk.snapshot();
  job.nodes = other_nodes(layout);
  int room_was_made = 0;
  for (std::uint64_t n = 1; n <= kOperationsOfAnOpen + 10; ++n) {
    SCOPED_TRACE(compose("operation {}", n));
    job.disk.restore(before);
    const std::size_t lines = job.log().size();
    std::optional<Failure> failure;
    Level level = Level::none;
    const auto outcomes = job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (scope.rank == 0) job.disk.fail(0, job.disk.operations(0) + n, ENOSPC);
      const auto thrown = attempt([&] { EXPECT_EQ(open_and_check(engine, scope.rank, ledger), 2); });
      if (scope.rank != 0) return;
      failure = thrown;
      level = engine.level("step-2");
    });
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.returned());
    if (failure) {  // the moved containers did not fit
      EXPECT_EQ(failure->code, ErrorCode::no_space) << to_string(*failure);
      continue;
    }
    EXPECT_EQ(level, Level::protected_);
    const auto log = job.log();
    room_was_made += std::any_of(log.begin() + static_cast<std::ptrdiff_t>(lines), log.end(), [](const auto& line) {
      return line.find("beside the copies on its former nodes") != std::string::npos;
    });
  }
  std::cout << room_was_made << " times protected when room was made\n";
  EXPECT_GT(room_was_made, 0);
}

/// The same move, and a protection that fails for another reason than room: what was left behind is what still covers
/// the loss of a node, where members of one set are together now.
TEST(RedundancySpace, WhatWasLeftBehindStaysWhileTheCommitIsNotProtectedAnew) {
  const Layout layout{.name = "two", .scheme = Scheme::xor_, .ranks = 6, .ranks_per_node = 2};
  SimulatedJob job(layout.ranks);
  use(job, layout);
  Ledger committed;
  (void)job.start([&](RankScope& scope) { run_application(scope, 2, committed, false); });
  const auto before = job.disk.snapshot();
  job.nodes = other_nodes(layout);
  int unprotected = 0;
  for (std::uint64_t n = 1; n <= kOperationsOfAnOpen && unprotected < 3; ++n) {
    SCOPED_TRACE(compose("operation {}", n));
    job.disk.restore(before);
    Level level = Level::none;
    const auto outcomes = job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (scope.rank == 0) job.disk.fail(0, job.disk.operations(0) + n, EIO);
      const auto thrown = attempt([&] { EXPECT_EQ(engine.open(), "step-2"); });
      if (scope.rank == 0 && !thrown) level = engine.level("step-2");
    });
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.returned());
    if (level != Level::local) continue;
    ++unprotected;
    const auto after = job.disk.snapshot();
    for (int node = 0; node < layout.nodes(); ++node) {
      SCOPED_TRACE(compose("node {} lost", node));
      job.disk.restore(after);
      lose_node(job, node);
      EXPECT_EQ(recover(job, 3).step, 2);
    }
  }
  EXPECT_GT(unprotected, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Storage, RedundancyFailingRank,
    testing::Values(Case{"xor_memory", {.name = "xor", .scheme = Scheme::xor_, .ranks = 3}, true},
                    Case{"rs_memory", {.name = "rs", .scheme = Scheme::rs, .ranks = 4}, true},
                    Case{"partner_durable", {.name = "partner", .scheme = Scheme::partner, .ranks = 4}, false}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kedge::faults::redundancy_failing_rank_test
