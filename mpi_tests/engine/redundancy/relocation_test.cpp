// Ranks come back on other nodes: containers and parity go to where their owners are now, verified completely; another
// scheme protects anew beside the old.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/text.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::relocation_test {
namespace {

using format::SetFileKind;
using Names = std::vector<std::string>;

struct Job : SimulatedJob {
  explicit Job(const Names& names, Scheme scheme = Scheme::xor_) : SimulatedJob(static_cast<int>(names.size())) {
    options.redundancy.scheme = scheme;
    place(*this, names);
    commit_steps(*this, {{"a", 1}, {"b", 2}});
  }
};

void expect_step(const Opened& opened, int step, RecoverySource source) {
  ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
  EXPECT_EQ(opened.step, step);
  EXPECT_EQ(to_string(opened.info.source), to_string(source));
}

/// Every rank's files lie on its node, and nothing else does on the nodes that the job has.
void expect_only_own_files(const SimulatedJob& job, const Names& nodes) {
  const std::set<std::string> names(nodes.begin(), nodes.end());
  std::map<std::size_t, std::size_t> containers;
  for (const std::string& node : names) {
    for (const std::string& file : files_in(job.disk, node)) {
      const auto dash = file.find('-') + 1;
      const auto rank = std::stoul(file.substr(dash, file.find('.') - dash));
      EXPECT_EQ(nodes.at(rank), node) << file;
      if (file.starts_with("rank-")) ++containers[rank];
    }
  }
  for (const auto& [rank, files] : containers) EXPECT_LE(files, 2U) << "rank " << rank;
}

void lose(SimulatedJob& job, const std::string& node) { job.disk.remove_all("/nodes/" + node); }

/// The recovered commit is protected where the ranks are now, and goes on from there.
void expect_well_again(SimulatedJob& job, const Names& nodes, int step) {
  lose(job, nodes.back());
  expect_step(reopen(job, latest, Newer::keep, {{"next", step + 1}}), step, RecoverySource::rebuilt);
  expect_only_own_files(job, nodes);
  lose(job, nodes.front());
  expect_step(reopen(job), step + 1, RecoverySource::rebuilt);
}

class Permuted : public testing::TestWithParam<Scheme> {};
INSTANTIATE_TEST_SUITE_P(Relocation, Permuted, testing::Values(Scheme::xor_, Scheme::partner),
                         [](const auto& one) { return std::string(to_string(one.param)); });

/// Rotation by one, by half, reversal, and some at random.
std::vector<Names> permutations(const Names& nodes, std::mt19937_64& random) {
  std::vector<Names> result;
  for (const std::size_t by : {std::size_t{1}, nodes.size() / 2}) {
    Names rotated = nodes;
    std::rotate(rotated.begin(), rotated.begin() + static_cast<std::ptrdiff_t>(by), rotated.end());
    result.push_back(rotated);
  }
  result.emplace_back(nodes.rbegin(), nodes.rend());
  for (int i = 0; i < 4; ++i) {
    Names shuffled = nodes;
    std::ranges::shuffle(shuffled, random);
    result.push_back(shuffled);
  }
  return result;
}

TEST_P(Permuted, RanksOverNodesFindTheirContainersAndAreProtectedAgain) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const auto& layout : {std::vector{1, 1, 1, 1}, {2, 2, 2, 2}, {2, 2, 1, 1}, {1, 1}}) {
    const Names before = on_nodes(layout);
    Job job(before, GetParam());
    const auto committed = job.disk.snapshot();
    for (const Names& now : permutations(before, random)) {
      SCOPED_TRACE(compose("seed {}, ranks on {}", seed, testing::PrintToString(now)));
      job.disk.restore(committed);
      place(job, now);
      const Opened opened = reopen(job);
      expect_step(opened, 2, now == before ? RecoverySource::in_place : RecoverySource::moved);
      EXPECT_EQ(opened.level, Level::protected_);
      expect_well_again(job, now, 2);
    }
  }
}

TEST_P(Permuted, RanksOverNodesAreRebuiltWhenANodeIsLostToo) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const auto& layout : {std::vector{1, 1, 1, 1}, {2, 2, 2, 2}, {1, 1, 1, 1, 1}}) {
    const Names before = on_nodes(layout);
    Job job(before, GetParam());
    const auto committed = job.disk.snapshot();
    for (const Names& now : permutations(before, random)) {
      for (std::size_t lost = 0; lost < layout.size(); ++lost) {
        SCOPED_TRACE(compose("seed {}, ranks on {}, lost n{}", seed, testing::PrintToString(now), lost));
        job.disk.restore(committed);
        place(job, now);
        lose(job, compose("node{}", lost));
        const Opened opened = reopen(job);
        expect_step(opened, 2, RecoverySource::rebuilt);
        EXPECT_EQ(opened.level, Level::protected_);
        expect_well_again(job, now, 2);
      }
    }
  }
}

TEST_P(Permuted, StoreDirectoriesSwappedBetweenNodes) {
  const Names nodes = on_nodes({2, 2, 2, 2});
  Job job(nodes, GetParam());
  move_store(job.disk, "node0", "aside");
  move_store(job.disk, "node3", "node0");
  move_store(job.disk, "aside", "node3");
  expect_step(reopen(job), 2, RecoverySource::moved);
  expect_well_again(job, nodes, 2);
}

TEST_P(Permuted, ANodeUnderANewNameWithItsStore) {
  Job job(on_nodes({1, 1, 1, 1}), GetParam());
  const Names now = {"node0", "renamed", "node2", "node3"};
  move_store(job.disk, "node1", "renamed");
  place(job, now);
  expect_step(reopen(job), 2, RecoverySource::in_place);
  expect_well_again(job, now, 2);
}

TEST_P(Permuted, ANewEmptyNodeTakesALostOnesPlace) {
  Job job(on_nodes({2, 2, 2, 2}), GetParam());
  lose(job, "node1");
  const Names now = {"node0", "node0", "new", "new", "node2", "node2", "node3", "node3"};
  place(job, now);
  expect_step(reopen(job), 2, RecoverySource::rebuilt);
  expect_well_again(job, now, 2);
}

TEST_P(Permuted, AContainerPresentTwiceCountsOnce) {
  const Names nodes = on_nodes({1, 1, 1, 1});
  for (const bool original_is_damaged : {false, true}) {
    Job job(nodes, GetParam());
    const std::string path = container_of(job.disk, 1, "b");
    const std::string copy = run_directory_of(job.disk, "node3") + path.substr(path.rfind('/'));
    job.disk.write_all(copy, job.disk.read_all(path));
    if (original_is_damaged) job.disk.flip_bit(path, inside_large(job.disk, path));
    expect_step(reopen(job), 2, original_is_damaged ? RecoverySource::moved : RecoverySource::in_place);
    expect_well_again(job, nodes, 2);
  }
}

TEST_P(Permuted, DamageInASourceIsALossBeforeAndDuringTheMove) {
  const Names before = on_nodes({1, 1, 1, 1});
  const Names now(before.rbegin(), before.rend());
  for (const Verify verify : {Verify::all, Verify::headers}) {
    for (const bool during : {false, true}) {
      SCOPED_TRACE(compose("verify {}, during {}", static_cast<int>(verify), during));
      Job job(before, GetParam());
      job.options.open.verify = verify;
      const std::string path = container_of(job.disk, 2, "b");
      const auto offset = inside_large(job.disk, path);
      if (during && verify == Verify::all) job.disk.flip_bit_when_verified(path, offset);
      else if (during) job.disk.flip_bit_when_opened(path, offset);
      else job.disk.flip_bit(path, offset);
      place(job, now);
      const Opened opened = reopen(job);
      expect_step(opened, 2, RecoverySource::rebuilt);
      EXPECT_EQ(opened.level, Level::protected_);
      expect_well_again(job, now, 2);
    }
  }
}

TEST(Relocation, RanksOfUnequalNodesFindTheirContainersWhenTheyChangePlaces) {
  struct LayoutPolicy {
    Scheme scheme;
    std::vector<int> before, now;
  };
  const std::vector<LayoutPolicy> cases = {
      {Scheme::xor_, {3, 2, 2, 1}, {2, 2, 2, 2}}, {Scheme::xor_, {2, 2, 2, 2}, {3, 3, 2}},
      {Scheme::xor_, {4, 2, 2}, {3, 3, 2}},       {Scheme::xor_, {4, 3, 1}, {1, 3, 4}},
      {Scheme::xor_, {1, 1, 1}, {1, 1, 1}},       {Scheme::partner, {4, 4}, {4, 2, 2}},
      {Scheme::partner, {3, 3, 2}, {4, 4}},       {Scheme::partner, {3, 2, 2}, {2, 2, 3}},
  };
  for (const LayoutPolicy& layouts : cases) {
    SCOPED_TRACE(compose("{} {} to {}", to_string(layouts.scheme), testing::PrintToString(layouts.before),
                         testing::PrintToString(layouts.now)));
    Job job(on_nodes(layouts.before), layouts.scheme);
    const Names now = on_nodes(layouts.now);
    place(job, now);
    const Opened opened = reopen(job);
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.step, 2);
    EXPECT_EQ(opened.level, Level::protected_);
    expect_well_again(job, now, 2);
  }
}

TEST(Relocation, WithoutProtectionContainersMoveAllTheSame) {
  Job job(on_nodes({5, 3}), Scheme::automatic);  // 5 of 8 in one place cannot be protected
  const Names now = on_nodes({4, 4});
  place(job, now);
  const Opened opened = reopen(job);
  expect_step(opened, 2, RecoverySource::moved);
  EXPECT_EQ(opened.level, Level::protected_) << "two nodes of four are partners";
  expect_well_again(job, now, 2);

  Job back(on_nodes({4, 4}), Scheme::automatic);
  const Names uneven = on_nodes({5, 3});
  place(back, uneven);
  const auto before = back.disk.snapshot();
  expect_step(reopen(back), 2, RecoverySource::moved);
  expect_only_own_files(back, uneven);  // what was left behind helps nobody
  back.disk.restore(before);
  const Opened unprotected = reopen(back, latest, Newer::keep, {{"c", 3}});
  expect_step(unprotected, 2, RecoverySource::moved);
  EXPECT_EQ(unprotected.level, Level::local);
  expect_step(reopen(back), 3, RecoverySource::in_place);
  expect_only_own_files(back, uneven);
}

TEST(Relocation, AnotherSchemeOrSetSizeProtectsAnew) {
  const Names nodes = on_nodes({1, 1, 1, 1, 1, 1});
  Job job(nodes, Scheme::xor_);
  const auto change = [&](Scheme scheme, std::uint32_t set_size) {
    job.options.redundancy.scheme = scheme;
    job.options.redundancy.set_size = set_size;
    const Opened opened = reopen(job);
    expect_step(opened, 2, RecoverySource::in_place);
    EXPECT_EQ(opened.level, Level::protected_);
    lose(job, "node2");
    expect_step(reopen(job), 2, RecoverySource::rebuilt);
  };
  change(Scheme::partner, 8);
  change(Scheme::xor_, 3);
  lose(job, "node0");
  lose(job, "node1");  // in two sets
  expect_step(reopen(job), 2, RecoverySource::rebuilt);
  change(Scheme::xor_, 8);
}

/// The room of the protection that a commit had before is what the next commit's takes: no store needs room for three.
TEST(Relocation, ANewProtectionFreesTheOneBeforeForTheNextCommit) {
  Job job(on_nodes({1, 1, 1, 1}), Scheme::xor_);
  job.options.redundancy.set_size = 2;
  const auto before = job.disk.snapshot();
  expect_step(reopen(job, latest, Newer::keep, {{"c", 3}}), 2, RecoverySource::in_place);
  EXPECT_TRUE(job.logged("b is protected again"));
  for (const std::string& file : files_in(job.disk, "node0")) {
    job.options.store.quota_bytes += job.disk.read_all(fs::join(run_directory_of(job.disk, "node0"), file)).size();
  }
  job.options.store.quota_bytes += 10'000;  // room for what there is, and not for one protection more
  job.disk.restore(before);
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), "b");
    EXPECT_EQ(engine.level("b"), Level::protected_);
    engine.close();
    commit_step(engine, scope.rank, "c", 3);
    EXPECT_EQ(engine.level("c"), Level::protected_);
  }));
}

TEST(Relocation, SetsOfTwoProtectionsThatMakeOneContainerLeaveOneFile) {
  // Which protection is asked for which rank is up to random ids: often to different ones.
  for (int round = 0; round < 16; ++round) {
    Job job({"node0", "node0", "node1", "node1"}, Scheme::partner);  // pairs 0 2 and 1 3
    place(job, {"node0", "node1", "node0", "node1"});                // pairs 0 1 and 2 3
    expect_step(reopen(job), 2, RecoverySource::moved);
    const Id128 commit_id = superblock_of(job.disk, 0, "b").commit.id;
    ASSERT_EQ(set_files(job.disk, SetFileKind::parity, commit_id).size(), 8U) << "the old one is retired and there";
    for (const int rank : {0, 2}) job.disk.remove_all(container_of(job.disk, rank, "b"));
    expect_step(reopen(job), 2, RecoverySource::rebuilt);
    for (int rank = 0; rank < job.ranks; ++rank) {
      const auto sealed = superblocks(job.disk, rank);
      EXPECT_EQ(std::ranges::count_if(sealed, [&](const auto& one) { return one.second.commit.tag == "b"; }), 1);
    }
  }
}

TEST(Relocation, FilesOfOthersStayAsTheyAre) {
  const Names before = on_nodes({1, 1, 1, 1});
  Job job(before);
  const std::string mine = run_directory_of(job.disk, "node1");
  SimulatedJob other(1);  // another run's container, for the bytes
  commit_steps(other, {{"x", 7}});
  const auto foreign = other.disk.read_all(container_of(other.disk, 0, "x"));
  job.disk.make_directories("/nodes/n1/kedge-1000-other");
  const Names kept = {"/nodes/n1/kedge-1000-other/rank-2.0.h5", mine + "/notes.txt", mine + "/rank-3.1.h5.bak",
                      mine + "/parity-03.1.kedge", "/nodes/n1/data.h5"};
  for (const std::string& path : kept) job.disk.write_all(path, foreign);
  // Not this user's, under a name that is.
  const std::string planted = mine + "/rank-3.5.h5";
  job.disk.write_all(planted, foreign);
  fs::FileStatus status = job.disk.snapshot().at(planted).status;
  status.owner = 4242;
  job.disk.plant(planted, status);

  const Names now(before.rbegin(), before.rend());
  place(job, now);
  expect_step(reopen(job, latest, Newer::keep, {{"c", 3}, {"d", 4}}), 2, RecoverySource::moved);
  for (const std::string& path : kept) EXPECT_EQ(job.disk.read_all(path), foreign) << path;
  EXPECT_EQ(job.disk.read_all(planted), foreign);
  EXPECT_EQ(reopen(job).step, 4);
}

}  // namespace
}  // namespace kedge::faults::relocation_test
