// restore reads each byte of a checkpoint of another number of ranks once, too: damage that shows while it loads costs
// nothing that is older, no function gets bytes before all was found whole, and parity is read behind the open.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "harness/elastic_fixture.hpp"
#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::other_ranks_once_test {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint64_t kElements = 96'000;
constexpr std::size_t kOwn = 600'000;
constexpr int kSavedBy = 4;

/// An array in even blocks, and bytes of each rank's own.
struct Program {
  Program(int rank, int ranks) : field(kElements / static_cast<std::uint64_t>(ranks)) {
    const std::uint64_t first = field.size() * static_cast<std::uint64_t>(rank);
    state.add("field", field, Block(Shard{Shape{kElements}, Shape{first}}));
  }
  void set(int rank, int step) {
    for (std::size_t i = 0; i < field.size(); ++i) {
      field[i] = static_cast<double>(field.size() * static_cast<std::size_t>(rank) + i) + 0.5 * step;
    }
  }
  std::vector<double> field;
  State state;
};

class OtherRanksOnce : public ElasticFixture {
 protected:
  /// Commits s1 and s2 on one node; the starts after it keep one checkpoint.
  static void prepare(SimulatedJob& job) {
    job.nodes.assign(8, "node0");
    job.options.redundancy.scheme = Scheme::single;
    job.options.store.keep = 2;
    start(job, kSavedBy, [&](Engine& engine, RankScope& scope) {
      Program program(scope.rank, scope.ranks);
      std::vector<char> own(kOwn, static_cast<char>('a' + scope.rank));
      program.state.add("own", own);
      for (const int step : {1, 2}) {
        program.set(scope.rank, step);
        engine.checkpoint(compose("s{}", step), program.state);
      }
      engine.finalize();
    });
    job.options.store.keep = 1;
  }

  /// What three ranks restore, and whose own bytes they got. All have the array of that step.
  struct Restored {
    std::vector<Tag> tags;
    std::vector<std::uint32_t> own_of;
  };
  static Restored restore(SimulatedJob& job, bool with_own = true) {
    std::mutex mutex;
    Restored restored;
    start(job, 3, [&](Engine& engine, RankScope& scope) {
      Program program(scope.rank, scope.ranks);
      std::vector<char> own;
      const PerRank take{[&](LogicalRank saved_by, std::span<const std::byte> bytes) {
        EXPECT_EQ(bytes.size(), kOwn);
        EXPECT_EQ(std::ranges::count(bytes, static_cast<std::byte>('a' + saved_by.value)), kOwn);
        const std::lock_guard guard(mutex);
        restored.own_of.push_back(saved_by.value);
      }};
      if (with_own) program.state.add("own", own, take);
      const Tag tag = engine.restore(program.state).value_or("nothing");
      Program expected(scope.rank, scope.ranks);
      expected.set(scope.rank, tag == "s2" ? 2 : 1);
      EXPECT_EQ(program.field, expected.field);
      engine.finalize();
      const std::lock_guard guard(mutex);
      restored.tags.push_back(tag);
    });
    return restored;
  }

  static double bytes_of_containers(SimulatedJob& job, const Tag& tag) {
    double bytes = 0;
    for (int rank = 0; rank < kSavedBy; ++rank) {
      bytes += static_cast<double>(job.disk.read_all(faults::container_of(job.disk, rank, tag)).size());
    }
    return bytes;
  }
};

TEST_F(OtherRanksOnce, ReadsEachByteOnce) {
  for (const bool with_own : {true, false}) {
    SimulatedJob job(kSavedBy, SimulatedJob::block_disk());
    prepare(job);
    const double containers = bytes_of_containers(job, "s2");
    const std::uint64_t before = job.disk.bytes_read("/nodes");
    EXPECT_THAT(restore(job, with_own).tags, Each("s2"));
    EXPECT_LT(static_cast<double>(job.disk.bytes_read("/nodes") - before), 1.25 * containers) << with_own;
  }
}

TEST_F(OtherRanksOnce, BytesOfTheirOwnThatDoNotFitAreReadAgain) {
  SimulatedJob job(kSavedBy, SimulatedJob::block_disk());
  prepare(job);
  job.options.open.buffer_bytes = 1U << 20U;  // some process has those of two ranks
  EXPECT_THAT(restore(job).own_of, testing::UnorderedElementsAre(0U, 1U, 2U, 3U));
}

/// Loaded or not, and whichever rank's: the one before is loaded, and nobody gets any bytes of its own twice.
TEST_F(OtherRanksOnce, DamageAnywhereCostsNothingThatIsOlder) {
  SimulatedJob job(kSavedBy);
  prepare(job);
  const auto committed = job.disk.snapshot();
  const std::size_t size = job.disk.read_all(faults::container_of(job.disk, 0, "s2")).size();
  int rank = 0;
  for (const bool with_own : {true, false}) {
    std::vector<std::size_t> places = {9, 4095, 4096, size - 1};
    for (std::size_t place = 100; place < size; place += size / 13) places.push_back(place);
    for (const std::size_t place : places) {
      rank = (rank + 1) % kSavedBy;
      SCOPED_TRACE(compose("byte {} of rank {}, {}", place, rank, with_own));
      job.disk.restore(committed);
      job.disk.flip_bit(faults::container_of(job.disk, rank, "s2"), place);
      const Restored restored = restore(job, with_own);
      EXPECT_THAT(restored.tags, Each("s1"));
      EXPECT_THAT(restored.own_of, SizeIs(with_own ? kSavedBy : 0));
    }
  }
}

TEST_F(OtherRanksOnce, ParityIsReadBehindTheOpen) {
  enum class Case { intact, damaged, damaged_and_none_is_protected_again };
  for (const Case which : {Case::intact, Case::damaged, Case::damaged_and_none_is_protected_again}) {
    const bool is_damaged = which != Case::intact;
    SimulatedJob job(8);
    job.options.redundancy.scheme = Scheme::xor_;
    job.options.redundancy.set_size = 4;
    job.options.redundancy.every = 1;
    for (int rank = 0; rank < 8; ++rank) job.nodes.push_back(compose("node{}", rank % 4));
    save(job, 8, "s1", 1);
    job.options.pipeline.mode = PipelineMode::background;
    job.surroundings = [](int, engine::EngineEnvironment& environment) { environment.waits_for_worker = true; };
    if (which == Case::damaged_and_none_is_protected_again) job.options.redundancy.every = 0;
    if (is_damaged) {
      const std::string parity = set_file_of(job.disk, format::SetFileKind::parity, 5, "s1");
      job.disk.flip_bit(parity, job.disk.read_all(parity).size() / 2);
    }
    start(job, 4, [&](Engine& engine, RankScope& scope) {
      ElasticProgram program(scope.rank, scope.ranks);
      EXPECT_EQ(engine.restore(program.state()), "s1");
      EXPECT_TRUE(engine.need_checkpoint());
      commit(engine, scope, "s2", 2);
      engine.finalize();
    });
    const std::string next = which == Case::damaged ? "; the next checkpoint will be; check" : "; check";
    const auto found = Contains(AllOf(HasSubstr("a check in the background found damage"),
                                      HasSubstr("s1 is no longer protected against the loss of a node" + next)));
    if (is_damaged) EXPECT_THAT(job.log(), found);
    else EXPECT_THAT(job.log(), Not(Contains(HasSubstr("found damage"))));
    expect_restored(job, which == Case::damaged_and_none_is_protected_again ? 4 : 3, 2, 4);
  }
}

}  // namespace
}  // namespace kedge::faults::other_ranks_once_test
