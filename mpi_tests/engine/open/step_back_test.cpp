// Damage to stored containers, of every kind, and another number of ranks: the job goes back to the newest commit that
// every rank can recover, and the error names each candidate and why it is lost.
#include <gtest/gtest.h>

#include <array>

#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::step_back_test {
namespace {

enum class Corruption { superblock, index, metadata, data, cut, cut_to_little, emptied, removed, older, another_ranks };
constexpr std::array kHarms = {
    Corruption::superblock,    Corruption::index,   Corruption::metadata, Corruption::data,  Corruption::cut,
    Corruption::cut_to_little, Corruption::emptied, Corruption::removed,  Corruption::older, Corruption::another_ranks};

/// A place in the middle of the large region.
std::uint64_t inside_data(FaultyDisk& disk, const std::string& path) {
  const auto file = disk.view(0)->open(path, fs::Access::read);
  const format::ContainerReader container(*file, file->status().size_bytes, path);
  const auto* region = container.find_region("field/large");
  return region->offset + region->size_bytes / 2;
}

std::uint64_t inside(FaultyDisk& disk, const std::string& path, Corruption harm) {
  const auto superblock = format::decode_superblock(disk.read_all(path), path);
  if (harm == Corruption::superblock) return 70;
  if (harm == Corruption::index) return superblock.index_offset + superblock.index_size / 2;
  if (harm == Corruption::data) return inside_data(disk, path);
  for (const auto& extent : superblock.extents) {
    if (extent.kind == format::ExtentKind::metadata) return extent.offset + extent.length / 2;
  }
  ADD_FAILURE() << "no HDF5 metadata in " << path;
  return 0;
}

/// Harms the newest container of a rank; its path.
std::string harm_newest(SimulatedJob& job, int rank, const Tag& newest, const Tag& older, Corruption harm) {
  FaultyDisk& disk = job.disk;
  std::string path = container_of(disk, rank, newest);
  switch (harm) {
    case Corruption::cut: disk.truncate_from_outside(path, disk.read_all(path).size() - 4096); break;
    case Corruption::cut_to_little: disk.truncate_from_outside(path, 100); break;
    case Corruption::emptied: disk.truncate_from_outside(path, 0); break;
    case Corruption::removed: disk.remove_all(path); break;
    case Corruption::older: disk.write_all(path, disk.read_all(container_of(disk, rank, older))); break;
    case Corruption::another_ranks:
      disk.write_all(path, disk.read_all(container_of(disk, (rank + 1) % job.ranks, newest)));
      break;
    default: disk.flip_bit(path, inside(disk, path, harm)); break;
  }
  return path;
}

void expect_few_files(const SimulatedJob& job, std::size_t at_most) {
  for (int rank = 0; rank < job.ranks; ++rank) EXPECT_LE(container_files(job.disk, rank).size(), at_most);
}

class EveryHarm : public testing::TestWithParam<Corruption> {};
INSTANTIATE_TEST_SUITE_P(StepBack, EveryHarm, testing::ValuesIn(kHarms),
                         [](const auto& harm) { return compose("{}", static_cast<int>(harm.param)); });

TEST_P(EveryHarm, OfTheNewestContainerOfOneRankBringsTheOneBeforeOnAllRanks) {
  SimulatedJob job(4);
  job.options.redundancy.scheme = Scheme::single;  // nothing can be rebuilt
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
  const std::string path = harm_newest(job, 2, "c", "b", GetParam());
  const Opened opened = reopen(job);
  EXPECT_FALSE(opened.failure) << to_string(*opened.failure);
  EXPECT_EQ(opened.tag, "b");
  EXPECT_EQ(opened.step, 2);
  EXPECT_TRUE(job.logged("skipped c"));
  EXPECT_TRUE(job.logged("the container of rank 2"));
  // What became an intact older one cannot be told from one that was never there, but the directory can be named.
  EXPECT_TRUE(job.logged(path) || job.logged("it is not in " + path.substr(0, path.rfind('/'))));
  expect_few_files(job, 3);

  const Opened next = reopen(job, latest, Newer::keep, {{"d", 4}, {"e", 5}});
  EXPECT_EQ(next.tag, "b");
  expect_few_files(job, 3);
  EXPECT_EQ(reopen(job).tag, "e");
  expect_few_files(job, 3);
}

TEST_P(EveryHarm, DoesNotGrowTheStoreRoundAfterRound) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  commit_steps(job, {{"t0", 100}, {"t1", 101}});
  for (int round = 2; round < 7; ++round) {
    const std::string newest = compose("t{}", round - 1);
    const std::string older = compose("t{}", round - 2);
    harm_newest(job, round % 2, newest, older, GetParam());
    const Opened opened =
        reopen(job, latest, Newer::keep, {{newest, 99 + round}, {compose("t{}", round), 100 + round}});
    EXPECT_EQ(opened.tag, older);
    EXPECT_EQ(opened.step, 98 + round);
    expect_few_files(job, 3);
  }
}

TEST(StepBack, ATagThatNoCommitHasIsNothingAndTheLogSaysSo) {
  SimulatedJob job(2);
  EXPECT_EQ(reopen(job, Tag("step-2")).tag, std::nullopt);
  EXPECT_FALSE(job.logged("no checkpoint matches")) << "there is none at all";
  commit_steps(job, {{"step-2", 2}, {"step-30", 30}});
  EXPECT_EQ(reopen(job, Tag("stp-30")).tag, std::nullopt);
  EXPECT_TRUE(job.logged("no checkpoint matches 'stp-30', so nothing was opened; the newest is step-30"));
}

TEST(StepBack, AllCandidatesDamagedIsUnrecoverableAndNamesEach) {
  for (const int ranks : {1, 2, 8}) {
    SimulatedJob job(ranks);
    job.options.redundancy.scheme = Scheme::single;  // nothing can be rebuilt
    job.options.store.keep = 2;
    commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
    const int victim = ranks - 1;
    for (const auto& [path, superblock] : superblocks(job.disk, victim)) {
      job.disk.flip_bit(path, inside_data(job.disk, path));
    }
    const auto before = job.disk.snapshot();
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Opened opened = reopen(job);
      ASSERT_TRUE(opened.failure) << ranks << " ranks";
      EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
      EXPECT_TRUE(says(opened.failure->message, {"test", "b (generation", "c (generation", "the container of rank",
                                                 "is damaged", "KEDGE_START=fresh"}))
          << opened.failure->message;
    }
    // Nothing was touched: whoever mends a file has it again.
    for (int rank = 0; rank < ranks; ++rank) {
      for (const std::string& path : container_files(job.disk, rank))
        EXPECT_EQ(job.disk.read_all(path), before.at(path).bytes);
    }
  }
}

TEST(StepBack, AContainerThatWentWhileTheJobRanIsNotInItsDirectory) {
  SimulatedJob job(2);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    scope.communicator.barrier(Deadline::after(std::chrono::seconds(60)));
    if (scope.rank == 0) job.disk.remove_all(container_of(job.disk, 1, "a"));
    scope.communicator.barrier(Deadline::after(std::chrono::seconds(60)));
    try {
      (void)engine.open();
      ADD_FAILURE() << "the container of rank 1 is gone";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unrecoverable);
      EXPECT_TRUE(says(error.what(), {"the container of rank 1 is missing: it is not in /nodes/node0/"}))
          << error.what();
    }
  }));
}

TEST(StepBack, DamageFoundInLoadIsCorruptInCloseAndExcluded) {
  for (const int ranks : {1, 3}) {
    SimulatedJob job(ranks);
    job.options.store.keep = 2;
    job.options.open.verify = Verify::headers;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    harm_newest(job, ranks - 1, "b", "a", Corruption::data);
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
      const int step = load_step(engine, scope.rank);
      EXPECT_EQ(step, scope.rank == ranks - 1 ? -1 : 2);
      try {
        engine.close();
        ADD_FAILURE() << "close did not tell of the damage";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::corrupt);
        EXPECT_EQ(error.failure().rank, ranks - 1);
        EXPECT_FALSE(error.failure().path.empty());
      }
      EXPECT_EQ(engine.open(), "a");
      EXPECT_EQ(load_step(engine, scope.rank), 1);
      engine.close();
      commit_step(engine, scope.rank, "c", 3);
    }));
    EXPECT_TRUE(job.logged("skipped b"));
    EXPECT_EQ(superblock_of(job.disk, 0, "c").commit.parent_id, superblock_of(job.disk, 0, "a").commit.id);
    EXPECT_EQ(reopen(job).tag, "c");
    expect_few_files(job, 3);
  }
}

TEST(StepBack, FinalizeTellsOfDamageFoundInLoadAsCloseDoes) {
  SimulatedJob job(2);
  commit_steps(job, {{"a", 1}});
  job.options.open.verify = Verify::headers;
  const std::string path = container_of(job.disk, 0, "a");
  job.disk.flip_bit(path, job.disk.read_all(path).size() / 2);
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "a");
    (void)load_step(engine, scope.rank);
    engine.finalize();
  });
  EXPECT_EQ(expect_all_failed(outcomes, ErrorCode::corrupt).rank, 0);
}

TEST(StepBack, ACommitAfterDamageFoundInLoadGoesOnFromTheCommitBefore) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  job.options.open.verify = Verify::headers;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  harm_newest(job, 0, "b", "a", Corruption::data);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    find_damaged(engine, scope.rank, latest, "b");
    commit_step(engine, scope.rank, "c", 3);  // without another open
  }));
  EXPECT_EQ(superblock_of(job.disk, 0, "c").commit.parent_id, superblock_of(job.disk, 0, "a").commit.id);
  EXPECT_EQ(reopen(job).tag, "c");
}

TEST(StepBack, RestoreStepsBackByItself) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  job.options.open.verify = Verify::headers;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  harm_newest(job, 0, "b", "a", Corruption::data);
  expect_all_returned(job.start([&](RankScope& scope) {
    int step = 0;
    std::vector<double> large(10'000);
    State state;
    state.add("step", step).add("field/large", large);
    Engine engine = scope.make_engine();
    std::vector<double> small(100);
    state.add("field/small", small);
    EXPECT_EQ(engine.restore(state), "a");
    EXPECT_EQ(step, 1);
  }));
}

TEST(StepBack, AllDamagedInLoadIsUnrecoverable) {
  SimulatedJob job(2);
  job.options.open.verify = Verify::headers;
  commit_steps(job, {{"a", 1}});
  harm_newest(job, 1, "a", "a", Corruption::data);
  const auto failure = expect_all_failed(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    int step = 0;
    std::vector<double> large(10'000);
    std::vector<double> small(100);
    State state;
    state.add("step", step).add("field/large", large).add("field/small", small);
    engine.restore(state);
  }),
                                         ErrorCode::unrecoverable);
  EXPECT_TRUE(says(failure.message, {"a (generation", "region 'field/large' is damaged"})) << failure.message;
}

TEST(StepBack, ADamagedContainerBesideAGoodCopyIsNoLoss) {
  for (const bool original_is_damaged : {true, false}) {
    SimulatedJob job(2);
    commit_steps(job, {{"a", 1}});
    const std::string path = container_of(job.disk, 1, "a");
    const std::string copy = path.substr(0, path.rfind('/')) + "/rank-1.7.h5";
    job.disk.write_all(copy, job.disk.read_all(path));
    const std::string& damaged = original_is_damaged ? path : copy;
    job.disk.flip_bit(damaged, inside_data(job.disk, damaged));
    EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}, {"c", 3}}).step, 1);
    EXPECT_EQ(reopen(job).step, 3);
    expect_few_files(job, 2);
  }
}

TEST(StepBack, OpenGivesTheTagAndTheStateOfWhatItSteppedBackTo) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  harm_newest(job, 1, "b", "a", Corruption::superblock);
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.tag, "a");
  EXPECT_EQ(opened.info.tag, "a");
  EXPECT_EQ(opened.info.id, superblock_of(job.disk, 0, "a").commit.id);
  EXPECT_EQ(opened.info.world_size, 2U);
  EXPECT_EQ(opened.info.logical_rank, LogicalRank{0});
}

class StepBackOfOtherRanks : public testing::TestWithParam<OtherRanks> {};

TEST_P(StepBackOfOtherRanks, IsRefusedInWordsAndKeepsTheOthersContainers) {
  for (const int now : {2, 8}) {
    SimulatedJob job(4);
    job.options.open.other_ranks = GetParam();
    commit_steps(job, {{"a", 1}, {"b", 2}});
    job.ranks = now;
    const Opened opened = reopen(job);
    ASSERT_TRUE(opened.failure);
    EXPECT_EQ(opened.failure->code, GetParam() == OtherRanks::refuse ? ErrorCode::unrecoverable : ErrorCode::mismatch);
    EXPECT_TRUE(says(opened.failure->message, {"saved by 4 ranks", compose("this job has {}", now)}))
        << opened.failure->message;
    // Going on regardless: until the first new commit is complete, the four ranks can come back.
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("c");
      engine.abandon();
    }));
    job.ranks = 4;
    EXPECT_EQ(reopen(job).step, 2);
    job.ranks = now;
    commit_steps(job, {{"c", 3}, {"d", 4}});
    EXPECT_EQ(reopen(job).step, 4);
    expect_few_files(job, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, StepBackOfOtherRanks, testing::Values(OtherRanks::accept, OtherRanks::refuse));

}  // namespace
}  // namespace kedge::faults::step_back_test
