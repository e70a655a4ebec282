// Every call that touches the prefix in one start, a source, waits, pins, discarding, the end, while one rank dies or
// falls silent at any message or operation, or its storage fails once: bounded, alike on all ranks, nothing persistent
// lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/full_test.hpp"
#include "harness/redundancy_history.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::prefix_calls_test {
namespace {

constexpr int kRanks = 3;

class PrefixCalls : public FlushFixture {
 protected:
  PrefixCalls() : job(kRanks) {
    job.options.run = "first";
    commit_steps(job, {{"source", 7}});
    job.options.run = "second";
    job.options.store.on_exit = OnExit::remove_if_persistent;
    job.options.store.keep = 2;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.options.persistent.every = 0;
    job.options.persistent.keep = 2;
    before = job.disk.snapshot();
  }

  /// What each rank met in each call, in words that must be the same on all.
  using Saw = std::vector<std::vector<std::string>>;

  std::vector<testing::RankOutcome> run(Saw& saw) {
    saw.assign(kRanks, {});
    return job.start([&](RankScope& scope) {
      auto& mine = saw[static_cast<std::size_t>(scope.rank)];
      const auto call = [&](std::string_view what, auto&& step) {
        const auto failure = attempt(step);
        mine.push_back(compose("{}: {}", what, failure ? to_string(failure->code) : "ok"));
        if (failure && failure->code == ErrorCode::timeout) throw Error(*failure);
        return !failure;
      };
      Engine engine = scope.make_engine();
      if (call("source", [&] { (void)engine.open(Source{"/prefix", "first", "source"}); })) {
        (void)load_step(engine, scope.rank);
        call("close", [&] { engine.close(); });
      }
      if (call("discard", [&] { (void)engine.open(Tag("a"), Newer::discard); })) {
        (void)load_step(engine, scope.rank);
        call("close", [&] { engine.close(); });
      }
      call("pin", [&] { engine.pin("a"); });
      call("commit", [&] { commit_step(engine, scope.rank, "c", 3); });
      call("wait", [&] { engine.wait("c", Level::persistent); });
      mine.emplace_back(engine.level("c") == Level::persistent ? "persistent" : "not");
      call("commit", [&] { commit_step(engine, scope.rank, "d", 4); });
      call("wait", [&] { engine.wait("d", Level::persistent); });
      call("unpin", [&] { engine.unpin("a"); });
      call("end", [&] { engine.finalize(); });
    });
  }

  void expect_alike(const Saw& saw, int victim, const std::string& where) {
    const std::vector<std::string>* longest = nullptr;
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      const auto& mine = saw[static_cast<std::size_t>(rank)];
      if (longest == nullptr || mine.size() > longest->size()) longest = &mine;
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto& mine = saw[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < mine.size() && i < longest->size(); ++i) {
        const bool in_doubt = mine[i].ends_with("timeout") || (*longest)[i].ends_with("timeout");
        EXPECT_TRUE(in_doubt || mine[i] == (*longest)[i])
            << where << ": rank " << rank << " saw " << mine[i] << ", another " << (*longest)[i];
        if (in_doubt) break;
      }
    }
  }

  /// What was said to be persistent is there without stores.
  void expect_nothing_lost(const Saw& saw, const std::string& where) {
    job.kill_all_ranks = false;
    job.plan = nullptr;
    bool any = false;
    for (const auto& mine : saw) any = any || std::ranges::count(mine, "persistent") != 0;
    job.disk.remove_all("/nodes");
    const Opened opened = reopen(job);
    EXPECT_TRUE(opened.tag && *opened.tag != "source") << where << (opened.failure ? to_string(*opened.failure) : "");
    EXPECT_TRUE(!any || opened.step >= 3) << where << ": step " << opened.step;
  }

  PersistentJob job;
  FaultyDisk::Snapshot before;
};

TEST_F(PrefixCalls, NoMessageIsOneTooFew) {
  Saw saw;
  for (const auto& outcome : run(saw)) ASSERT_TRUE(outcome.returned());
  for (const auto& mine : saw) {
    for (const auto& line : mine) EXPECT_TRUE(line.ends_with("ok") || line == "persistent") << line;
  }
  const auto events = job.events;  // of the undisturbed start
  for (const testing::StopKind kind : {testing::StopKind::die, testing::StopKind::stop}) {
    for (const Point& point : points("calls, messages", events, 40, Deaths::alone)) {
      job.disk.restore(before);
      job.plan = [&](testing::InProcessWorld& world) { world.stop_at(point.rank, point.n - 1, kind); };
      const auto outcomes = run(saw);
      const std::string where = compose("rank {}, event {}", point.rank, point.n - 1);
      ASSERT_EQ(joined(check_survivors(outcomes, point.rank)), "") << where;
      expect_alike(saw, point.rank, where);
      expect_nothing_lost(saw, where);
      if (HasFailure()) return;
    }
  }
}

TEST_F(PrefixCalls, EveryOperationIsACrashPoint) {
  Saw saw;
  for (const auto& outcome : run(saw)) ASSERT_TRUE(outcome.returned());
  for (const Point& point : points("calls", job.operations, 4)) {
    job.disk.restore(before);
    plan(job, point);
    const auto outcomes = run(saw);
    ASSERT_EQ(joined(check_survivors(outcomes, point.together ? -1 : point.rank)), "") << describe(point);
    expect_alike(saw, point.rank, describe(point));
    expect_nothing_lost(saw, describe(point));
    if (HasFailure()) return;
  }
}

TEST_F(PrefixCalls, OneRanksStorageFailsOnce) {
  for (const bool read : {false, true}) {
    for (int rank = 0; rank < kRanks; ++rank) {
      for (std::uint64_t n = 30; n < 600; n += full_test() ? 1U : 7U) {
        job.disk.restore(before);
        Saw saw;
        if (read) job.disk.fail_read(rank, n, EIO);
        else job.disk.fail(rank, n, n % 2 == 0 ? EIO : ENOSPC);
        const auto outcomes = run(saw);
        const std::string where = compose("rank {}, {} {}", rank, read ? "read" : "operation", n);
        const bool started = !saw[0].empty();
        for (const auto& outcome : outcomes) EXPECT_TRUE(outcome.returned() || !started) << where;
        expect_alike(saw, -1, where);
        expect_nothing_lost(saw, where);
        if (HasFailure()) {
          for (const auto& line : job.log()) std::cout << line << '\n';
          return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kedge::faults::prefix_calls_test
