// The look before an open: every byte of what counts is read, and of what does not count only headers; damage counts as
// missing.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <span>

#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::look_test {
namespace {

using format::SetFileKind;

struct Job : SimulatedJob {
  Job(int count, Scheme scheme, std::uint32_t keep) : SimulatedJob(count) {
    ranks_per_node = 1;
    options.redundancy.scheme = scheme;
    options.store.keep = keep;
  }
  /// Damage that only a look at every byte finds.
  void damage_data(int rank, const Tag& tag) {
    const std::string path = container_of(disk, rank, tag);
    disk.flip_bit(path, inside_large(disk, path));
  }
  void damage_parity(int rank, const Tag& tag) {
    disk.flip_bit(set_file_of(disk, SetFileKind::parity, rank, tag), format::kSuperblockBytes + 100);
  }
  [[nodiscard]] std::set<Tag> tags_on(int rank) const {
    std::set<Tag> tags;
    for (const auto& [path, superblock] : superblocks(disk, rank)) tags.insert(superblock.commit.tag);
    return tags;
  }
};

void expect_opened(const Opened& opened, const Tag& tag, int step) {
  ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
  EXPECT_EQ(opened.tag, tag);
  EXPECT_EQ(opened.step, step);
}

TEST(Look, OfWhatDoesNotCountOnlyHeadersAreRead) {
  for (const Verify verify : {Verify::all, Verify::headers}) {
    Job job(4, Scheme::xor_, 1);
    job.options.open.verify = verify;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    const auto reads_of = [&](const std::string& path) {
      return static_cast<double>(job.disk.bytes_read(path)) / static_cast<double>(job.disk.read_all(path).size());
    };
    std::vector<std::string> counts, retired;
    for (int rank = 0; rank < job.ranks; ++rank) {
      for (auto& [tag, paths] : {std::pair("a", &retired), std::pair("b", &counts)}) {
        paths->push_back(container_of(job.disk, rank, tag));
        paths->push_back(set_file_of(job.disk, SetFileKind::parity, rank, tag));
      }
    }
    std::map<std::string, double> before;
    for (const auto* paths : {&counts, &retired}) {
      for (const std::string& path : *paths) before[path] = reads_of(path);
    }
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
    }));
    for (const std::string& path : retired) EXPECT_LT(reads_of(path) - before[path], 0.5) << path;
    for (const std::string& path : counts) {
      const double read = reads_of(path) - before[path];
      EXPECT_GE(read, verify == Verify::all ? 1.0 : 0.0) << path;
      EXPECT_LT(read, 3.0) << path;
    }
  }
}

TEST(Look, OfTwoThatAreDamagedOneAfterTheOtherBothAreSkipped) {
  Job job(4, Scheme::single, 2);
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  job.damage_data(0, "c");
  job.damage_data(2, "b");
  expect_opened(reopen(job), "a", 1);
  EXPECT_TRUE(job.logged("skipped c"));
  EXPECT_TRUE(job.logged("skipped b"));
  EXPECT_TRUE(job.logged("the container of rank 0 is damaged"));
  EXPECT_TRUE(job.logged("the container of rank 2 is damaged"));
  EXPECT_FALSE(job.logged("could not be recovered"));
}

TEST(Look, WithParityBothAreRebuilt) {
  Job job(4, Scheme::xor_, 2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const auto committed = job.disk.snapshot();
  job.damage_data(1, "b");
  expect_opened(reopen(job), "b", 2);
  job.disk.restore(committed);
  job.damage_data(1, "b");
  job.damage_data(3, "b");
  job.damage_data(2, "a");
  const Opened opened = reopen(job);
  expect_opened(opened, "a", 1);
  EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
  EXPECT_FALSE(job.logged("could not be recovered"));
}

TEST(Look, WhatStaysBesideTheOpenedIsReadWholeToo) {
  Job job(2, Scheme::single, 2);
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  job.damage_data(1, "b");
  expect_opened(reopen(job, latest, Newer::keep, {{"d", 4}}), "c", 3);
  // Not the damaged b but the intact a stayed until there was d.
  for (int rank = 0; rank < job.ranks; ++rank) EXPECT_EQ(job.tags_on(rank), (std::set<Tag>{"a", "c", "d"}));
}

TEST(Look, DamagedParityOfWhatStaysKeepsTheOneBeforeItAlive) {
  for (const bool damaged : {false, true}) {
    Job job(4, Scheme::xor_, 2);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.options.redundancy.every = 0;
    commit_steps(job, {{"c", 3}});
    if (damaged) job.damage_parity(2, "b");
    expect_opened(reopen(job, latest, Newer::keep, {{"d", 4}}), "c", 3);
    // c and d are only local: of the protected ones the newest stays that still is protected.
    for (int rank = 0; rank < job.ranks; ++rank) {
      EXPECT_EQ(job.tags_on(rank), damaged ? (std::set<Tag>{"a", "b", "c", "d"}) : (std::set<Tag>{"b", "c", "d"}));
    }
    job.options.redundancy.every = 1;
    job.disk.remove_all(store_of(1));
    expect_opened(reopen(job), damaged ? "a" : "b", damaged ? 1 : 2);
  }
}

TEST(Look, DamageInParityAloneIsMendedBeforeOpenReturns) {
  for (int victim = 0; victim < 4; ++victim) {
    Job job(4, Scheme::xor_, 1);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.damage_parity(victim, "b");
    const Opened opened = reopen(job);
    expect_opened(opened, "b", 2);
    EXPECT_EQ(opened.level, Level::protected_);
    EXPECT_EQ(opened.info.source, RecoverySource::in_place);
    EXPECT_TRUE(job.logged("b is protected again"));
    job.disk.remove_all(store_of((victim + 1) % 4));
    expect_opened(reopen(job), "b", 2);
  }
}

TEST(Look, AFileThatGoesBetweenTheLookAndItsVerificationIsMissing) {
  for (const Scheme scheme : {Scheme::single, Scheme::xor_}) {
    Job job(4, scheme, 2);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.disk.vanish_when_opened(container_of(job.disk, 3, "b"));
    const Opened opened = reopen(job);
    const bool rebuilt = scheme == Scheme::xor_;
    expect_opened(opened, rebuilt ? "b" : "a", rebuilt ? 2 : 1);
    EXPECT_EQ(opened.info.source, rebuilt ? RecoverySource::rebuilt : RecoverySource::in_place);
    EXPECT_FALSE(job.logged("could not be recovered"));
    EXPECT_EQ(job.logged("the container of rank 3 is missing"), !rebuilt);
  }
}

TEST(Look, AStoreThatFailsAtAnyReadNeverGivesAWrongByte) {
  Job job(4, Scheme::xor_, 2);
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const auto committed = job.disk.snapshot();
  for (std::uint64_t first = 1;; first += 3) {
    SCOPED_TRACE(first);
    job.disk.restore(committed);
    std::uint64_t reads = 0;
    OnEachRank met(job.ranks);
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      scope.communicator.barrier(Deadline::after(std::chrono::seconds(60)));
      if (scope.rank == 2) {
        reads = job.disk.reads(2);
        for (std::uint64_t n = 0; n < 40; ++n) job.disk.fail_read(2, reads + first + n, EIO);
      }
      met.put(scope.rank, failure_of([&] {
                (void)engine.open();
                const int step = load_step(engine, scope.rank);
                EXPECT_TRUE(step == -1 || step == 1 || step == 2) << step;
                engine.close();
              }));
      if (scope.rank == 2) {
        job.disk.heal(2);
        reads = job.disk.reads(2) - reads;
      }
    }));
    const auto failure = met.same();
    EXPECT_TRUE(!failure || failure->code == ErrorCode::io || failure->code == ErrorCode::unrecoverable);
    if (first > reads) break;
  }
}

TEST(Look, ACheckpointWithoutAnOpenOverwritesNothingThatADamagedOneLeavesNewest) {
  for (const bool commits : {false, true}) {
    Job job(2, Scheme::single, 1);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.damage_data(1, "b");
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("c");
      std::vector<double> other(10'000, 7.0);
      EXPECT_TRUE(engine.save("field/large", region(std::span(other))).ok());
      if (!commits) engine.abandon();
    }));
    expect_opened(reopen(job), "a", 1);
  }
}

/// What was left to a rebuild that does not take place after all is read before the commit is opened.
TEST(Look, WhatWasLeftToARebuildThatIsGivenUpIsReadAfterAll) {
  Job job(4, Scheme::xor_, 1);
  job.options.redundancy.set_size = 4;
  job.options.persistent.every = 1;
  commit_steps(job, {{"a", 1}});
  job.disk.remove_all(container_of(job.disk, 0, "a"));
  job.damage_data(1, "a");    // a survivor, which the rebuild of rank 0 would read
  job.damage_parity(2, "a");  // is found first, because it is moved: nothing is rebuilt then
  place(job, {"node0", "node1", "node3", "node2"});
  const Opened opened = reopen(job);
  expect_opened(opened, "a", 1);
  EXPECT_EQ(opened.info.source, RecoverySource::fetched);
}

TEST(Look, AFileThatAnotherOneTookTheNameOfIsUsedLikeAnyOther) {
  Job job(3, Scheme::xor_, 1);
  commit_steps(job, {{"a", 1}});
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    if (scope.rank == 0) {
      for (int rank = 0; rank < job.ranks; ++rank) {
        const std::string path = container_of(job.disk, rank, "a");
        const auto bytes = job.disk.read_all(path);
        job.disk.remove_all(path);
        job.disk.write_all(path, bytes);
        job.disk.plant(path, {fs::FileStatus::Kind::file, bytes.size(), 1000, 0600, 1, 1000});
      }
    }
    std::uint64_t done = 1;
    scope.communicator.all_reduce(std::span(&done, 1), Reduction::max, Deadline::after(std::chrono::seconds(5)));
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(engine.info().source, RecoverySource::in_place);
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
    commit_step(engine, scope.rank, "b", 2);
  }));
  expect_opened(reopen(job), "b", 2);
}

/// A rebuild that is tried before survivors were read must not take the file of the retired commit: it may find them
/// damaged. "b" is lost then, and "a" is what is opened, of which all containers are in place.
TEST(Look, ARebuildThatFailsDoesNotCostTheOlderCommit) {
  Job job(4, Scheme::xor_, 1);
  job.options.redundancy.every = 2;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    commit_step(engine, scope.rank, "b", 2);
    std::uint64_t done = 1;
    scope.communicator.all_reduce(std::span(&done, 1), Reduction::max, Deadline::after(std::chrono::seconds(5)));
    if (scope.rank == 0) {
      EXPECT_EQ(job.tags_on(0), (std::set<Tag>{"a", "b"}));
      job.disk.remove_all(container_of(job.disk, 0, "b"));
      job.damage_data(3, "b");
    }
    scope.communicator.all_reduce(std::span(&done, 1), Reduction::max, Deadline::after(std::chrono::seconds(5)));
    EXPECT_EQ(engine.open(), "a");
    EXPECT_EQ(load_step(engine, scope.rank), 1);
    engine.close();
  }));
}

}  // namespace
}  // namespace kedge::faults::look_test
