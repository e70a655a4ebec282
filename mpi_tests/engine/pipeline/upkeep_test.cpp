// What an open leaves to be done in the background: parity and older commits are read, damage is repaired, the commit
// is protected again, and a new commit goes first.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "harness/deferred_work_fixture.hpp"

namespace kedge::faults::upkeep_test {
namespace {

using format::SetFileKind;

class Upkeep : public DeferredWorkFixture {};

TEST_F(Upkeep, OpenReturnsBeforeParityIsRead) {
  commit_protected({{"a", 1}});
  block_reads();
  LateOpener opener(gate);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.level("a"), Level::protected_);
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    once(engine, scope.rank, [&] {
      await_blocked(4);
      opener.open();
    });
    engine.finalize();  // which waits for it
  }));
  EXPECT_EQ(lines_with("found damage:"), 0U);
}

TEST_F(Upkeep, AContainerOfWhatIsOpenedIsReadBefore) {
  commit_protected({{"a", 1}});
  job.disk.flip_bit(faults::container_of(job.disk, 2, "a"),
                    inside_large(job.disk, faults::container_of(job.disk, 2, "a")));
  block_reads();
  gate.open();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.info().source, RecoverySource::rebuilt);
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
  }));
}

TEST_F(Upkeep, FlippedParityIsFoundAndRepairedAndALostNodeComesBackFromIt) {
  commit_protected({{"a", 1}});
  const auto committed = job.disk.snapshot();
  for (int victim = 0; victim < 4; ++victim) {
    SCOPED_TRACE(victim);
    job.disk.restore(committed);
    flip_parity(victim, "a");
    const std::string damaged = set_file_of(job.disk, SetFileKind::parity, victim, "a");
    const auto old_bytes = job.disk.read_all(damaged);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "a");
      EXPECT_EQ(load_step(engine, scope.rank), 1);
      engine.close();
      engine.finalize();
      EXPECT_EQ(engine.level("a"), Level::protected_);
      EXPECT_EQ(engine.counters().protections, 1U);
    }));
    EXPECT_TRUE(
        job.logged(compose("a check in the background found damage: corrupt on rank {}: its parity is damaged ({}); "
                           "a is protected again (xor)",
                           victim, damaged)));
    EXPECT_EQ(lines_with("found damage:"), static_cast<std::size_t>(victim) + 1) << "once";
    for (const auto& [path, entry] : job.disk.snapshot())
      EXPECT_NE(entry.bytes, old_bytes) << path << " was not discarded";
    for (int node = 0; node < 4; ++node) expect_recovers({node}, "a", 1);
  }
}

/// From when it is found until it is protected again.
TEST_F(Upkeep, ADamagedProtectionCountsNot) {
  commit_protected({{"a", 1}});
  flip_parity(1, "a");
  block_new_parity();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    once(engine, scope.rank, [&] { gate.await(4); });
    EXPECT_EQ(engine.level("a"), Level::local);
    once(engine, scope.rank, [&] { gate.open(); });
    engine.wait("a", Level::protected_);
    EXPECT_EQ(engine.level("a"), Level::protected_);
    EXPECT_EQ(engine.counters().protections, 1U) << "not once more for the one who waits";
    engine.close();
  }));
}

TEST_F(Upkeep, TwoMembersOfASetAreRepairedTogether) {
  commit_protected({{"a", 1}});
  flip_parity(0, "a");
  flip_parity(3, "a");
  (void)job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.close();
    engine.finalize();
  });
  EXPECT_EQ(lines_with("and 1 more; a is protected again"), 1U);
  for (int node = 0; node < 4; ++node) expect_recovers({node}, "a", 1);
}

TEST_F(Upkeep, WithReedSolomonTwoLostNodesComeBackFromWhatWasRepaired) {
  job.ranks = 6;
  job.options.redundancy.scheme = Scheme::rs;
  job.options.redundancy.parity = 2;
  job.options.redundancy.set_size = 6;
  commit_protected({{"a", 1}});
  for (const int rank : {1, 2, 5}) flip_parity(rank, "a");
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.close();
    engine.finalize();
  }));
  EXPECT_EQ(lines_with("and 2 more; a is protected again (rs)"), 1U);
  for (const auto& lost : {std::vector{0, 1}, {2, 5}, {3, 4}}) expect_recovers(lost, "a", 1);
}

/// The commit goes first, and then it is found.
TEST_F(Upkeep, ACommitIsNotKeptWaiting) {
  job.options.store.keep = 2;
  commit_protected({{"a", 1}});
  flip_parity(2, "a");
  block_reads();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    open_with_blocked_reads(engine, scope.rank);
    commit_step(engine, scope.rank, "b", 2);
    once(engine, scope.rank, [&] { gate.open(); });
    engine.wait("b", Level::protected_);
    engine.finalize();
    EXPECT_EQ(engine.level("a"), Level::protected_);
  }));
  const auto lines = job.log();
  const auto line = [&](std::string_view part) {
    return std::ranges::find_if(lines, [&](const std::string& one) { return one.find(part) != std::string::npos; });
  };
  ASSERT_NE(line("found damage:"), lines.end());
  EXPECT_LT(line("committed b"), line("found damage:"));
}

/// Each rank tells its worker of a commit when it has written the event of it: rank 0 soon, the others late.
TEST_F(Upkeep, RanksMayHearOfACommitOneAfterTheOther) {
  job.options.store.keep = 2;
  commit_protected({{"a", 1}, {"b", 2}});
  job.options.events.path = "/prefix/events";
  block_reads();
  std::atomic<bool> commits = false;
  holds.appending = [&](const std::string& path) {
    if (!commits) return;
    if (path.find("node0") == std::string::npos) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    else gate.open();
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    once(engine, scope.rank, [&] {
      await_blocked(4);
      commits = true;
    });
    commit_step(engine, scope.rank, "c", 3);
    engine.wait("c", Level::protected_);
    engine.finalize();
  }));
  expect_recovers({1}, "c", 3);
}

/// A commit that is superseded before it was read is not read any more.
TEST_F(Upkeep, WhatIsSupersededIsLeftAlone) {
  commit_protected({{"a", 1}});
  flip_parity(2, "a");
  block_reads();
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    open_with_blocked_reads(engine, scope.rank);
    commit_step(engine, scope.rank, "b", 2);
    commit_step(engine, scope.rank, "c", 3);
    once(engine, scope.rank, [&] { gate.open(); });
    engine.finalize();
    EXPECT_EQ(engine.level("c"), Level::protected_);
  }));
  EXPECT_EQ(lines_with("found damage:"), 0U);
  expect_recovers({1}, "c", 3);
}

/// After ranks moved so that both members of each set are on one node: open returns when the containers are in place.
TEST_F(Upkeep, WhatMovedIsProtectedAgainBehind) {
  job.nodes = {"n0", "n0", "n1", "n1"};
  commit_protected({{"a", 1}});
  job.nodes = {"n1", "n0", "n1", "n0"};
  std::vector<std::optional<Failure>> heard(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.pause();
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.info().source, RecoverySource::moved);
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.on_complete("a", Level::protected_, [&](const std::optional<Failure>& failure) {
      heard[static_cast<std::size_t>(scope.rank)] = failure.value_or(Failure{ErrorCode::busy, "reached", -1, {}, 0});
    });
    EXPECT_EQ(engine.level("a"), Level::local);
    EXPECT_FALSE(engine.wait_for("a", Level::protected_, std::chrono::seconds(0)));
    engine.resume();
    engine.wait("a", Level::protected_);
    EXPECT_EQ(engine.level("a"), Level::protected_);
    EXPECT_EQ(engine.counters().protections, 1U) << "not once more for the one who waits";
    engine.close();
    engine.finalize();
  }));
  for (const auto& told : heard) EXPECT_EQ(told ? told->message : "nothing", "reached");
  EXPECT_EQ(lines_with("a is protected again (xor)"), 1U);
  EXPECT_EQ(lines_with("found damage:"), 0U);
  for (const std::string node : {"n0", "n1"}) {
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(superblocks(job.disk, rank).size(), 1U) << "former copies stay";
    const auto before = job.disk.snapshot();
    job.disk.remove_all("/nodes/" + node);
    EXPECT_EQ(reopen(job).step, 1);
    job.disk.restore(before);
  }
}

/// The former copies stay until then, so that the next start has what this one had.
TEST_F(Upkeep, WhatCannotBeProtectedAgainIsToldAndKeepsItsCopies) {
  job.nodes = {"n0", "n0", "n1", "n1"};
  commit_protected({{"a", 1}});
  job.nodes = {"n1", "n0", "n1", "n0"};
  thread_local bool opens = false;  // and moves parity, while the worker makes new one
  holds.making = [&](const std::string& path) {
    if (!opens && is_parity(path)) throw Error(Failure{ErrorCode::io, "the disk refuses", -1, path, 0});
  };
  OnEachRank told(4);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    opens = true;
    EXPECT_EQ(engine.open(), "a");
    opens = false;
    told.put(scope.rank, failure_of([&] { engine.wait("a", Level::protected_); }));
    EXPECT_EQ(engine.level("a"), Level::local);
    engine.close();
    engine.finalize();
  }));
  ASSERT_TRUE(told.same());
  EXPECT_EQ(told.same()->code, ErrorCode::io);
  EXPECT_EQ(lines_with("a is open and not protected against the loss of a node"), 1U);
  holds = {};
  for (const std::string node : {"n0", "n1"}) {
    const auto before = job.disk.snapshot();
    job.disk.remove_all("/nodes/" + node);
    EXPECT_EQ(reopen(job).step, 1) << "without " << node;
    job.disk.restore(before);
  }
}

/// The container of an older commit that stays: it is rebuilt when it is asked for, and the next checkpoint looks at
/// what there is.
TEST_F(Upkeep, OlderCommitsAreReadBehindToo) {
  job.options.store.keep = 2;
  commit_protected({{"a", 1}, {"b", 2}});
  const std::string older = faults::container_of(job.disk, 3, "a");
  job.disk.flip_bit(older, inside_large(job.disk, older));
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    engine.wait("b", Level::persistent);  // and for what is read
    EXPECT_EQ(engine.level("a"), Level::local);
    EXPECT_EQ(engine.open(Tag("a")), "a");
    EXPECT_EQ(engine.info().source, RecoverySource::rebuilt);
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    EXPECT_EQ(engine.open(), "b");
    engine.close();
    commit_step(engine, scope.rank, "c", 3);
    engine.finalize();
  }));
  EXPECT_EQ(lines_with(compose("corrupt on rank 3: region 'field/large' is damaged ({})", older)), 1U);
  EXPECT_EQ(reopen(job).step, 3);
}

TEST_F(Upkeep, AnOlderCommitThatIsDamagedHasTheNextCheckpointLookAgain) {
  job.options.store.keep = 2;
  commit_protected({{"a", 1}, {"b", 2}});
  const std::string older = faults::container_of(job.disk, 3, "a");
  job.disk.flip_bit(older, inside_large(job.disk, older));
  const auto read_by_two_checkpoints = [&] {
    std::array<std::uint64_t, 2> bytes{};
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
      engine.close();
      engine.wait("b", Level::persistent);
      std::uint64_t before = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        once(engine, scope.rank, [&] { before = job.disk.bytes_read("/nodes"); });
        engine.create("next");
        once(engine, scope.rank, [&] { bytes[i] = job.disk.bytes_read("/nodes") - before; });
        engine.abandon();
      }
    }));
    return bytes;
  };
  const auto bytes = read_by_two_checkpoints();
  EXPECT_GT(bytes[0], 4 * job.disk.read_all(older).size()) << "all that stays was read";
  EXPECT_LT(bytes[1], bytes[0] / 4) << "once";
}

/// Which files stay is decided when nobody else reads or retires any.
TEST_F(Upkeep, ACheckpointThatLooksAtTheStoresWaitsForTheWorker) {
  job.options.store.keep = 2;
  commit_protected({{"a", 1}, {"b", 2}});
  const std::string container = faults::container_of(job.disk, 2, "b");
  job.disk.flip_bit_when_verified(container, inside_large(job.disk, container));
  std::set<std::string> held;
  for (int rank = 0; rank < 4; ++rank) held.insert(set_file_of(job.disk, SetFileKind::parity, rank, "b"));
  gate.close();
  holds.reading = [&](const std::string& path) {
    if (held.contains(path)) gate.pass();
  };
  std::jthread opener;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    once(engine, scope.rank, [&] { await_blocked(4); });  // before they hear that it is not worth reading
    load_damaged(engine, scope.rank);
    once(engine, scope.rank, [&] {
      opener = std::jthread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        gate.open();
      });
    });
    engine.create("c");
    EXPECT_TRUE(gate.is_open());
    engine.abandon();
    commit_step(engine, scope.rank, "c", 3);
    engine.finalize();
  }));
}

/// A new node has no file to refill: it gets one before the first checkpoint asks for it.
TEST_F(Upkeep, StorageOfTheFirstCheckpointIsMadeReady) {
  PersistentJob one(4);
  prepare(one);
  commit_protected(one, {{"a", 1}});
  one.disk.remove_all(store_of(1));
  expect_all_returned(one.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    engine.close();
    engine.wait("a", Level::persistent);  // and for the rest
    once(engine, scope.rank, [&] {
      std::vector<std::size_t> sizes;
      for (const std::string& file : container_files(one.disk, 1)) sizes.push_back(one.disk.read_all(file).size());
      EXPECT_EQ(sizes.size(), 2U);
      EXPECT_GE(sizes.back(), sizes.front());
    });
  }));
}

}  // namespace
}  // namespace kedge::faults::upkeep_test
