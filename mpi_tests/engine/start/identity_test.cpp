// Who the run is, what its numbers are, what becomes of a lost record, and that it never starts silently from zero:
// commits are noted on the prefix and in every store.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/text.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::identity_test {
namespace {

constexpr auto kAnyTime = std::chrono::seconds(60);
const std::string kRecords = "/prefix/.kedge/test";

std::string text_of(const FaultyDisk& disk, const std::string& path) {
  std::string text;
  for (const std::byte byte : disk.read_all(path)) text += static_cast<char>(byte);
  return text;
}

void remove_stores(SimulatedJob& job) {
  job.disk.remove_all("/nodes");
  job.disk.make_directories("/nodes", 0755);
}

void remove_record(SimulatedJob& job) {
  job.disk.remove_all("/prefix");
  job.disk.make_directories("/prefix", 0755);
}

/// Makes the prefix fail in all changes from now on, between two barriers of the job.
void break_prefix(SimulatedJob& job, RankScope& scope, int write_errno) {
  scope.communicator.barrier(Deadline::after(kAnyTime));
  if (scope.rank == 0) {
    Volume volume;
    volume.write_errno = write_errno;
    job.disk.set_volume("/prefix", volume);
  }
  scope.communicator.barrier(Deadline::after(kAnyTime));
}

TEST(Identity, TheRunIdIsInTheRecordInEveryStoreAndInEveryContainer) {
  for (const int ranks : {1, 4, 8}) {
    SimulatedJob job(ranks);
    commit_steps(job, {{"a", 1}});
    reopen(job, latest, Newer::keep, {{"b", 2}});
    const auto id = superblock_of(job.disk, 0, "b").commit.run_id;
    EXPECT_FALSE(id.is_none());
    EXPECT_TRUE(says(text_of(job.disk, kRecords + "/run.json"), {to_string(id)}));
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(superblock_of(job.disk, rank, "b").commit.run_id, id);
      EXPECT_TRUE(
          says(text_of(job.disk, run_directory_of(job.disk, compose("node{}", rank / 2)) + "/run"), {to_string(id)}));
    }
  }
}

TEST(Identity, TwoRunsHaveTwoIds) {
  SimulatedJob job(1);
  commit_steps(job, {{"a", 1}});
  job.options.run = "other";
  commit_steps(job, {{"b", 2}});
  EXPECT_NE(superblock_of(job.disk, 0, "a").commit.run_id, superblock_of(job.disk, 0, "b").commit.run_id);
  EXPECT_EQ(reopen(job).tag, "b");
  job.options.run = "test";
  EXPECT_EQ(reopen(job).tag, "a");
}

TEST(Identity, EveryStartTakesAGreaterIncarnation) {
  SimulatedJob job(2);
  std::uint64_t before = 0;
  for (int start = 0; start < 6; ++start) {
    const auto tag = compose("t{}", start);
    if (start == 3) remove_stores(job);
    commit_steps(job, {{tag, start}});
    const auto incarnation = superblock_of(job.disk, 0, tag).commit.incarnation;
    EXPECT_EQ(superblock_of(job.disk, 1, tag).commit.incarnation, incarnation);
    EXPECT_GT(incarnation, before);
    before = incarnation;
  }
}

TEST(Identity, AStartThatDiesAnywhereLeavesNoNumberThatIsUsedTwice) {
  SimulatedJob job(2);
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"b", 2}});
  const auto operations = job.operations[0];
  for (std::uint64_t n = 1; n <= operations; ++n) {
    job.disk.restore(before);
    job.disk.stop_world_after(0, n, n);
    job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
      engine.close();
      commit_step(engine, scope.rank, "b", 2);
    });
    std::uint64_t seen = 0;
    std::uint64_t incarnation = 0;
    for (int rank = 0; rank < 2; ++rank) {
      for (const auto& [path, superblock] : superblocks(job.disk, rank)) {
        seen = std::max(seen, superblock.commit.generation);
        incarnation = std::max(incarnation, superblock.commit.incarnation);
      }
    }
    const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
    EXPECT_FALSE(opened.failure) << "operation " << n;
    const auto next = superblock_of(job.disk, 0, "c");
    EXPECT_GT(next.commit.generation, seen) << "operation " << n;
    EXPECT_GT(next.commit.incarnation, incarnation) << "operation " << n;
  }
}

TEST(Identity, GenerationsGrowAlsoAfterStoresWereLost) {
  SimulatedJob job(4);
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  const auto generation = superblock_of(job.disk, 0, "c").commit.generation;
  job.disk.remove_all("/nodes/node1");
  commit_steps(job, {{"d", 4}});
  EXPECT_GT(superblock_of(job.disk, 0, "d").commit.generation, generation);
  const auto next = superblock_of(job.disk, 3, "d").commit.generation;
  remove_stores(job);
  commit_steps(job, {{"e", 5}});
  EXPECT_GT(superblock_of(job.disk, 0, "e").commit.generation, next);
}

TEST(Identity, GenerationsGrowAlsoAfterTheRecordWasLost) {
  SimulatedJob job(2);
  for (int start = 0; start < 3; ++start) reopen(job, latest, Newer::keep, {{"a", start}});
  const auto generation = superblock_of(job.disk, 0, "a").commit.generation;
  remove_record(job);
  job.options.start = StartMode::adopt;
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 7}}).step, 2);
  EXPECT_GT(superblock_of(job.disk, 0, "b").commit.generation, generation);
  EXPECT_EQ(reopen(job).step, 7);
}

TEST(Identity, GenerationsAreGreaterThanThoseOfUnfinishedAndForeignContainers) {
  SimulatedJob job(2);
  job.options.store.keep = 3;
  reopen(job, latest, Newer::keep, {{"a", 1}});
  const auto before = job.disk.snapshot();
  for (int start = 0; start < 3; ++start) reopen(job, latest, Newer::keep, {{"b", 2}});
  const std::string path = container_of(job.disk, 1, "b");
  const auto newest = job.disk.read_all(path);
  const auto generation = superblock_of(job.disk, 1, "b").commit.generation;
  // Only rank 1 has ever heard of the newest, and the incarnation's own count begins below it.
  job.disk.restore(before);
  job.disk.write_all(run_directory_of(job.disk, "node0") + "/rank-1.5.h5", newest);
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).tag, "a");
  EXPECT_GT(superblock_of(job.disk, 0, "c").commit.generation, generation);
}

TEST(Identity, TheParentIsWhatWasOpenedOrCommittedBefore) {
  SimulatedJob job(2);
  job.options.store.keep = 4;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const auto a = superblock_of(job.disk, 0, "a");
  const auto b = superblock_of(job.disk, 1, "b");
  EXPECT_TRUE(a.commit.parent_id.is_none());
  EXPECT_EQ(b.commit.parent_id, a.commit.id);
  EXPECT_NE(b.commit.id, a.commit.id);
  EXPECT_EQ(superblock_of(job.disk, 0, "b").commit.id, b.commit.id);
  reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_EQ(superblock_of(job.disk, 0, "c").commit.parent_id, b.commit.id);
  const Opened opened = reopen(job, Tag{"a"}, Newer::keep, {{"d", 4}});
  EXPECT_TRUE(opened.info.parent_id.is_none());
  EXPECT_EQ(superblock_of(job.disk, 0, "d").commit.parent_id, a.commit.id);
}

TEST(Identity, ARepeatedTagIsANewGenerationAndOpenTakesTheNewestOfThatName) {
  SimulatedJob job(2);
  job.options.store.keep = 4;
  commit_steps(job, {{"best", 1}, {"x", 2}, {"best", 3}, {"y", 4}});
  EXPECT_EQ(reopen(job, Tag{"best"}).step, 3);
  EXPECT_EQ(reopen(job, Before{"best"}).tag, std::nullopt);
  job.disk.remove_all(container_of(job.disk, 1, "best"));
  EXPECT_EQ(reopen(job, Tag{"best"}).step, 1);
  EXPECT_TRUE(job.logged("skipped best"));
  EXPECT_EQ(reopen(job, Tag{"nothing-of-this-name"}).tag, std::nullopt);
}

TEST(Identity, ARepeatedTagThatFailsLeavesTheOlder) {
  SimulatedJob job(2);
  commit_steps(job, {{"best", 1}});
  expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    engine.create("best");
    if (scope.rank == 1) engine.save("bad", Region{nullptr, DataType::float64, Shape{3}});
    engine.commit();
  }),
                    ErrorCode::invalid_argument);
  EXPECT_EQ(reopen(job, Tag{"best"}).step, 1);
}

TEST(Identity, ALostRecordIsMadeAgainFromTheStores) {
  SimulatedJob job(4);
  commit_steps(job, {{"a", 1}});
  const auto id = superblock_of(job.disk, 0, "a").commit.run_id;
  remove_record(job);
  job.options.start = StartMode::adopt;
  EXPECT_EQ(reopen(job).step, 1);
  job.options.start = StartMode::continue_;
  EXPECT_TRUE(says(text_of(job.disk, kRecords + "/run.json"), {to_string(id)}));
  // Also that commits exist is known again.
  remove_stores(job);
  EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::unrecoverable);
}

TEST(Identity, ALostRecordIsMadeAgainFromAnyStoreThatIsLeft) {
  SimulatedJob job(4);
  commit_steps(job, {{"a", 1}});
  const auto id = superblock_of(job.disk, 2, "a").commit.run_id;
  remove_record(job);
  job.disk.remove_all("/nodes/node0");
  job.options.start = StartMode::adopt;
  reopen(job);
  EXPECT_TRUE(says(text_of(job.disk, kRecords + "/run.json"), {to_string(id)}));
  EXPECT_TRUE(says(text_of(job.disk, run_directory_of(job.disk, "node0") + "/run"), {to_string(id)}));
}

TEST(Identity, LostStoresAreUnrecoverableOnAllRanksAndNeverASilentStartFromZero) {
  for (const int ranks : {1, 2, 4}) {
    SimulatedJob job(ranks);
    commit_steps(job, {{"a", 1}});
    remove_stores(job);
    for (int start = 0; start < 2; ++start) {
      const auto failure = expect_all_failed(job.start([&](RankScope& scope) {
        Engine engine = scope.make_engine();
        (void)engine.open();
      }),
                                             ErrorCode::unrecoverable);
      EXPECT_TRUE(says(failure.message,
                       {"test", "none of them", "no container of them is on the prefix or in a node-local store",
                        "KEDGE_START=fresh"}))
          << failure.message;
    }
  }
}

TEST(Identity, OneLostStoreIsUnrecoverableAndNamesRankAndDirectory) {
  SimulatedJob job(4);
  job.options.redundancy.scheme = Scheme::single;  // nothing can be rebuilt
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all("/nodes/node1");
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  EXPECT_TRUE(says(opened.failure->message, {"a (generation", "the container of rank 2 is missing", "/nodes/node1/"}))
      << opened.failure->message;
}

TEST(Identity, ARecordWithoutCommitsAndEmptyStoresIsNothing) {
  SimulatedJob job(4);
  for (int start = 0; start < 2; ++start) {
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure);
    EXPECT_EQ(opened.tag, std::nullopt);
  }
  EXPECT_EQ(reopen(job, Tag{"a"}).tag, std::nullopt);
  EXPECT_EQ(reopen(job, Before{"a"}).tag, std::nullopt);
}

TEST(Identity, APrefixThatCannotBeReachedIsIoOnAllRanks) {
  SimulatedJob job(4);
  commit_steps(job, {{"a", 1}});
  for (const int error : {ESTALE, EIO}) {
    Volume gone;
    gone.read_errno = error;
    job.disk.set_volume("/prefix", gone);
    const auto failure = expect_all_failed(
        job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); }), ErrorCode::io);
    EXPECT_TRUE(says(failure.path, {"/prefix"}));
    EXPECT_EQ(failure.system_errno, error);
    job.disk.set_volume("/prefix", {});
    EXPECT_EQ(reopen(job).step, 1);
  }
}

TEST(Identity, TheFirstCommitStandsWhenThePrefixCannotNoteItAndIsNotedLater) {
  for (const int error : {EIO, EROFS}) {
    SimulatedJob job(2);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      break_prefix(job, scope, error);
      commit_step(engine, scope.rank, "a", 1);
      EXPECT_EQ(engine.level("a"), Level::local);
      break_prefix(job, scope, 0);
      commit_step(engine, scope.rank, "b", 2);
    }));
    EXPECT_TRUE(job.logged("could not record that a commit exists"));
    EXPECT_TRUE(job.disk.snapshot().contains(kRecords + "/first-commit"));
    remove_stores(job);
    EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::unrecoverable);
  }
}

TEST(Identity, ACommitThatWasNotNotedIsNotedWhenItIsOpened) {
  SimulatedJob job(2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    break_prefix(job, scope, EROFS);
    commit_step(engine, scope.rank, "a", 1);
  }));
  job.disk.set_volume("/prefix", {});
  EXPECT_FALSE(job.disk.snapshot().contains(kRecords + "/first-commit"));
  EXPECT_EQ(reopen(job).step, 1);
  remove_stores(job);
  EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::unrecoverable);
}

/// One first commit of which a byte is wrong in one container: nothing else says that there was one.
void commit_once_and_damage(SimulatedJob& job) {
  commit_steps(job, {{"a", 1}});
  job.disk.flip_bit(container_of(job.disk, job.ranks - 1, "a"), 5000);
}

TEST(Identity, ADamagedFirstCommitIsUnrecoverableAlsoWithoutThePrefixRecords) {
  for (const int ranks : {1, 3, 4}) {
    SimulatedJob job(ranks);
    job.options.redundancy.scheme = Scheme::single;  // nothing can be rebuilt
    commit_once_and_damage(job);
    remove_record(job);
    job.options.start = StartMode::adopt;
    for (int start = 0; start < 2; ++start) {
      const auto failure = reopen(job).failure.value_or(Failure{});
      EXPECT_EQ(failure.code, ErrorCode::unrecoverable) << to_string(failure);
      EXPECT_TRUE(says(failure.message, {"a (generation", "is damaged", "KEDGE_START=fresh"})) << failure.message;
    }
  }
}

TEST(Identity, TheNoteOfAnyOneNodeIsEnough) {
  SimulatedJob job(6);
  commit_once_and_damage(job);
  remove_record(job);
  job.disk.remove_all("/nodes/node0");
  job.disk.remove_all("/nodes/node2");
  job.options.start = StartMode::adopt;
  EXPECT_EQ(reopen(job).failure.value_or(Failure{}).code, ErrorCode::unrecoverable);
}

TEST(Identity, ANodeThatCannotNoteACommitSaysSoAndTriesAgain) {
  SimulatedJob job(2);
  std::string note;
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    scope.communicator.barrier(Deadline::after(kAnyTime));
    if (scope.rank == 0) {
      note = run_directory_of(job.disk, "node0") + "/committed";
      job.disk.make_directories(note);
    }
    scope.communicator.barrier(Deadline::after(kAnyTime));
    commit_step(engine, scope.rank, "a", 1);
    EXPECT_EQ(engine.level("a"), Level::local);
    scope.communicator.barrier(Deadline::after(kAnyTime));
    if (scope.rank == 0) job.disk.remove_all(note);
    scope.communicator.barrier(Deadline::after(kAnyTime));
    commit_step(engine, scope.rank, "b", 2);
  }));
  EXPECT_TRUE(job.logged("the node-local store could not record that a commit exists"));
  EXPECT_TRUE(says(text_of(job.disk, note), {to_string(superblock_of(job.disk, 0, "b").commit.run_id)}));
}

TEST(Identity, TheNoteOfAnotherRunOrHalfANoteIsNone) {
  for (const std::string_view text : {"0123456789abcdef0123456789abcdef\n", "", "0123"}) {
    SimulatedJob job(2);
    reopen(job);
    job.disk.write_all(run_directory_of(job.disk, "node0") + "/committed", std::as_bytes(std::span(text)));
    const Opened opened = reopen(job, latest, Newer::keep, {{"a", 1}});
    EXPECT_FALSE(opened.failure);
    EXPECT_EQ(opened.tag, std::nullopt);
    EXPECT_TRUE(says(text_of(job.disk, run_directory_of(job.disk, "node0") + "/committed"),
                     {to_string(superblock_of(job.disk, 0, "a").commit.run_id)}));
  }
}

TEST(Identity, WithinOneStartACommitThatCouldBeNotedNowhereStillCounts) {
  SimulatedJob job(2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    break_prefix(job, scope, EROFS);
    commit_step(engine, scope.rank, "a", 1);
    scope.communicator.barrier(Deadline::after(kAnyTime));
    if (scope.rank == 0) job.disk.flip_bit(container_of(job.disk, 0, "a"), 5000);
    scope.communicator.barrier(Deadline::after(kAnyTime));
    EXPECT_THROW((void)engine.open(), Error);
  }));
}

}  // namespace
}  // namespace kedge::faults::identity_test
