// What protected a commit before the layout or the options changed protects it until something better does.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::former_protection_test {
namespace {

/// Opened again after the loss of each node in turn.
void expect_survives_each_node(SimulatedJob& job, const std::vector<std::string>& nodes, const Tag& tag) {
  const auto before = job.disk.snapshot();
  for (const std::string& node : nodes) {
    job.disk.restore(before);
    job.disk.remove_all("/nodes/" + node);
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.tag, tag) << "without " << node << ": "
                               << (opened.failure ? to_string(*opened.failure) : "no failure");
  }
  job.disk.restore(before);
}

/// "b" is protected by xor.
void make_protected(SimulatedJob& job) {
  job.ranks_per_node = 1;
  job.options.redundancy.scheme = Scheme::xor_;
  job.options.redundancy.every = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
}

TEST(FormerProtection, CountsAfterTheSchemeChangedIfTheNewOneFails) {
  SimulatedJob job(4);
  make_protected(job);
  job.options.redundancy.scheme = Scheme::partner;
  job.options.redundancy.every = 3;
  const auto before = job.disk.snapshot();
  int failed = 0;
  for (std::uint64_t n = 1; n < 40; ++n) {
    SCOPED_TRACE(n);
    job.disk.restore(before);
    bool is_open = false;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      if (scope.rank == 0) job.disk.fail(0, job.disk.operations(0) + n, EIO);
      const auto failure = attempt([&] { (void)engine.open(); });
      if (scope.rank == 0) {
        job.disk.heal(0);
        is_open = !failure;
      }
      if (failure) return;
      EXPECT_EQ(engine.level("b"), Level::protected_);
      engine.close();
      for (const char* tag : {"c", "d"}) commit_step(engine, scope.rank, tag, 3);
    }));
    if (!is_open || !job.logged("b is open and keeps the protection that it had")) continue;
    ++failed;
    job.disk.remove_all("/nodes/node1");
    EXPECT_EQ(reopen(job).tag, "b");  // "c" and "d" are local
    if (failed == 3) break;
  }
  EXPECT_GT(failed, 0);
}

TEST(FormerProtection, CountsIfNoneIsMadeAnyMore) {
  for (const Scheme scheme : {Scheme::partner, Scheme::single}) {
    SimulatedJob job(4);
    make_protected(job);
    job.options.redundancy.scheme = scheme;
    job.options.redundancy.every = 0;
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}, {"d", 4}});
    EXPECT_EQ(opened.level, Level::protected_);
    job.disk.remove_all("/nodes/node1");
    EXPECT_EQ(reopen(job).tag, "b");
  }
}

/// Two members of one set on one node: that is no protection, whatever the set files say.
TEST(FormerProtection, CountsNotIfANodeHoldsTwoMembersOfASet) {
  SimulatedJob job(4);
  make_protected(job);
  job.ranks_per_node = 2;
  job.options.redundancy.every = 0;
  for (int rank = 0; rank < 4; ++rank)
    job.disk.mount(rank, compose("/nodes/node{}", rank / 2), compose("/nodes/node{}", rank));
  EXPECT_EQ(reopen(job).level, Level::local);
}

TEST(FormerProtection, OnDemandIsNotLostByAMove) {
  SimulatedJob job(4);
  job.nodes = {"n0", "n0", "n1", "n1"};
  job.options.redundancy.scheme = Scheme::xor_;
  job.options.redundancy.every = 0;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    engine.wait("a", Level::protected_);
  }));
  job.nodes = {"n1", "n0", "n1", "n0"};
  EXPECT_EQ(reopen(job).level, Level::local);
  expect_survives_each_node(job, {"n0", "n1"}, "a");
  // And no longer than that commit is needed.
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    (void)engine.open();
    engine.close();
    commit_step(engine, scope.rank, "b", 2);
    engine.wait("b", Level::protected_);
  }));
  expect_survives_each_node(job, {"n0", "n1"}, "b");
  for (int rank = 0; rank < 4; ++rank) EXPECT_LE(superblocks(job.disk, rank).size(), 2U) << rank;
}

/// Though newer commits supersede it, it is what the job goes on from.
TEST(FormerProtection, OfAnOlderCommitThatIsOpenIsKnownAndCanBeRaised) {
  for (const std::uint32_t keep : {1U, 2U}) {
    SimulatedJob job(4);
    make_protected(job);
    job.options.redundancy.every = 1;
    job.options.store.keep = 2;
    commit_steps(job, {{"c", 3}});
    job.options.store.keep = keep;
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(Tag("b")), "b");
      EXPECT_EQ(engine.level("b"), Level::protected_);
      engine.wait("b", Level::persistent);
      EXPECT_EQ(engine.level("b"), Level::persistent);
      EXPECT_EQ(engine.level("c"), Level::protected_);
      engine.close();
    }));
  }
}

}  // namespace
}  // namespace kedge::faults::former_protection_test
