// A container whose header lies about its commit, under a checksum that fits: what one file says is held against what
// the others say before its bytes are trusted.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/text.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::lying_headers_test {
namespace {

struct Lie {
  std::string name;
  std::function<void(CommitHead&)> tell;
};

const std::vector<Lie>& lies() {
  static const std::vector<Lie> all = {
      {"tag", [](CommitHead& head) { head.tag = "a-much-better-one"; }},
      {"parent", [](CommitHead& head) { head.parent_id.bytes.fill(7); }},
      {"incarnation", [](CommitHead& head) { head.incarnation += 5; }},
      {"time", [](CommitHead& head) { head.time_ns += 1'000'000'000; }},
      {"generation", [](CommitHead& head) { head.generation += 3; }},
      {"last generation", [](CommitHead& head) { head.generation = std::numeric_limits<std::uint64_t>::max(); }},
      {"fewer ranks", [](CommitHead& head) { head.world_size -= 1; }},
      {"run", [](CommitHead& head) { head.run_id.bytes.fill(9); }},
  };
  return all;
}

/// The header of a rank's container of "b" is changed.
void tell(SimulatedJob& job, int rank, const Lie& lie) {
  const std::string path = container_of(job.disk, rank, "b");
  auto bytes = job.disk.read_all(path);
  const auto header = std::span(bytes).first(format::kSuperblockBytes);
  format::Superblock superblock = format::decode_superblock(header, path);
  lie.tell(superblock.commit);
  std::ranges::copy(format::encode_superblock(superblock), bytes.begin());
  job.disk.write_all(path, bytes);
}

class LyingHeaders : public ::testing::TestWithParam<int> {
 protected:
  LyingHeaders() : job(4) {
    job.options.store.keep = 2;
    job.options.redundancy.scheme = Scheme::xor_;
    job.ranks_per_node = 1;
  }
  SimulatedJob job;
};

TEST_P(LyingHeaders, OneIsRebuiltFromTheOthersAndBelievedInNothing) {
  for (const Lie& lie : lies()) {
    SCOPED_TRACE(lie.name);
    SimulatedJob one(4);
    one.options = job.options;
    one.ranks_per_node = job.ranks_per_node;
    one.options.log = {};
    one.options.log.level = LogLevel::off;
    commit_steps(one, {{"a", 1}, {"b", 2}});
    const CommitHead truth = superblock_of(one.disk, GetParam(), "b").commit;
    tell(one, GetParam(), lie);
    const Opened opened = reopen(one, latest, Newer::keep, {{"c", 3}});
    EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.tag, "b");
    EXPECT_EQ(opened.step, 2);
    EXPECT_EQ(static_cast<const CommitHead&>(opened.info), truth);
    EXPECT_EQ(reopen(one).step, 3);  // and what came after it is the newest
  }
}

TEST_P(LyingHeaders, OneWithoutHelpCostsItsCommitAndTheMessageSaysWhatItSays) {
  job.options.redundancy.scheme = Scheme::single;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  tell(job, GetParam(), lies().front());
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.step, 1);
  EXPECT_TRUE(
      job.logged("its header contradicts the other containers of the commit (tag a-much-better-one, the others b)"));
  EXPECT_EQ(reopen(job, Tag{"a-much-better-one"}).tag, std::nullopt);
}

TEST_P(LyingHeaders, OneIsFetchedFromThePrefix) {
  job.options.redundancy.scheme = Scheme::single;
  job.options.persistent.every = 1;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  for (const Lie& lie : lies()) {
    SCOPED_TRACE(lie.name);
    const auto before = job.disk.snapshot();
    tell(job, GetParam(), lie);
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.tag, "b");
    EXPECT_EQ(opened.step, 2);
    job.disk.restore(before);
  }
}

INSTANTIATE_TEST_SUITE_P(OfRank, LyingHeaders, ::testing::Values(0, 2));

/// With one rank there is nobody to contradict it.
TEST(LyingHeadersOfOne, AnImpossibleHeaderIsDamageAndTheNextCommitIsSeen) {
  for (const Lie& lie :
       {Lie{"generation", [](CommitHead& head) { head.generation = std::numeric_limits<std::uint64_t>::max(); }},
        Lie{"tag", [](CommitHead& head) { head.tag = "../../etc"; }},
        Lie{"world size", [](CommitHead& head) { head.world_size = 0; }}}) {
    SCOPED_TRACE(lie.name);
    SimulatedJob job(1);
    job.options.store.keep = 2;
    commit_steps(job, {{"a", 1}, {"b", 2}});
    tell(job, 0, lie);
    EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).step, 1);
    EXPECT_EQ(reopen(job).step, 3);
  }
}

TEST(LyingHeadersOfHalf, NoneOfTheTwoSidesIsBelieved) {
  SimulatedJob job(2);
  job.options.store.keep = 2;
  job.options.redundancy.scheme = Scheme::single;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  tell(job, 1, lies().front());
  const Opened opened = reopen(job, latest, Newer::keep, {{"c", 3}});
  EXPECT_EQ(opened.step, 1);
  EXPECT_EQ(reopen(job).step, 3);
}

TEST(LyingHeadersOfAll, AManifestThatContradictsTheStoresIsNotFetchedFrom) {
  SimulatedJob job(2);
  job.options.redundancy.scheme = Scheme::single;
  job.options.persistent.every = 1;
  commit_steps(job, {{"b", 2}});
  for (const int rank : {0, 1}) tell(job, rank, lies().front());
  // The stores agree with each other; whose word is true cannot be told, and none is mixed with the other.
  EXPECT_EQ(reopen(job).step, 2);
  job.disk.remove_all("/nodes");
  EXPECT_EQ(reopen(job).tag, "b");
}

}  // namespace
}  // namespace kedge::faults::lying_headers_test
