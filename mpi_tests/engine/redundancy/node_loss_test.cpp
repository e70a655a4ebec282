// A node is lost with its store, each subset of nodes in turn: what can be recovered, that members of a set lie on
// different nodes, and what is protected afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "harness/full_test.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::node_loss_test {
namespace {

struct Case {
  Scheme scheme = Scheme::xor_;
  int nodes = 4;
  std::uint32_t ranks_per_node = 1;
  std::uint32_t set_size = 8;
  std::uint32_t parity = 1;  ///< for rs
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& param = info.param;
  const std::string parity = param.scheme == Scheme::rs ? compose("{}", param.parity) : "";
  return compose("{}{}_{}nodes_{}each_setsof{}", to_string(param.scheme), parity, param.nodes, param.ranks_per_node,
                 param.set_size);
}

void set_up(SimulatedJob& job, const Case& param) {
  job.ranks_per_node = param.ranks_per_node;
  job.options.redundancy.scheme = param.scheme;
  job.options.redundancy.set_size = param.set_size;
  job.options.redundancy.parity = param.parity;
}

using Nodes = std::set<int>;

Nodes nodes_in(unsigned pattern) {
  Nodes nodes;
  for (int node = 0; node < 32; ++node) {
    if ((pattern >> static_cast<unsigned>(node) & 1U) != 0) nodes.insert(node);
  }
  return nodes;
}

/// What the sets on the disk promise: each survives the loss of as many members as it has parity, whatever else is
/// lost.
class Oracle {
 public:
  Oracle(const FaultyDisk& disk, const Case& param, const Tag& tag)
      : ranks_per_node_(static_cast<int>(param.ranks_per_node)), tolerance_(param.parity), sets_(sets_of(disk, tag)) {
    check(param);
  }

  [[nodiscard]] bool can_be_recovered(const Nodes& lost) const { return lost_set(lost) == nullptr; }
  /// The set of the lowest rank that cannot be had again.
  [[nodiscard]] const std::vector<int>* lost_set(const Nodes& lost) const {
    const std::vector<int>* worst = nullptr;
    for (const auto& set : sets_) {
      const auto gone = gone_of(set, lost);
      if (gone.size() > tolerance_ && (worst == nullptr || gone.front() < gone_of(*worst, lost).front())) worst = &set;
    }
    return worst;
  }
  [[nodiscard]] std::vector<int> gone_of(const std::vector<int>& set, const Nodes& lost) const {
    std::vector<int> gone;
    std::ranges::copy_if(set, std::back_inserter(gone), [&](int rank) { return lost.contains(node_of(rank)); });
    std::ranges::sort(gone);
    return gone;
  }
  [[nodiscard]] int node_of(int rank) const { return rank / ranks_per_node_; }

 private:
  /// As CONTRACTS has it: every rank in one set, members on different nodes, sizes alike and as asked for.
  void check(const Case& param) const {
    std::multiset<int> members;
    std::set<std::size_t> sizes;
    for (const auto& set : sets_) {
      Nodes nodes;
      for (const int rank : set) nodes.insert(node_of(rank));
      EXPECT_EQ(nodes.size(), set.size()) << "two members of a set are on one node";
      members.insert(set.begin(), set.end());
      sizes.insert(set.size());
    }
    EXPECT_EQ(members.size(), static_cast<std::size_t>(param.nodes * ranks_per_node_));
    EXPECT_EQ(std::set<int>(members.begin(), members.end()).size(), members.size());
    EXPECT_GE(*sizes.begin(), tolerance_ + 1);
    EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1U);
    const bool odd = (param.nodes * ranks_per_node_) % 2 != 0;
    const std::size_t most = param.scheme == Scheme::partner || param.set_size == 2 ? (odd ? 3 : 2) : param.set_size;
    EXPECT_LE(*sizes.rbegin(), most);
  }

  int ranks_per_node_;
  std::size_t tolerance_;
  std::vector<std::vector<int>> sets_;
};

void lose(SimulatedJob& job, const Nodes& nodes) {
  for (const int node : nodes) job.disk.remove_all(store_of(node));
}

/// The lost members of the first set that lost too many: by rank, the first four by the directory that should hold
/// them.
void expect_named(const Failure& failure, const Oracle& oracle, const Nodes& lost) {
  EXPECT_EQ(failure.code, ErrorCode::unrecoverable);
  const auto& set = *oracle.lost_set(lost);
  const auto gone = oracle.gone_of(set, lost);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    // Of a set of which nothing is left only the first member is known to be lost: by its container's number.
    if (gone.size() == set.size() && i != 0) break;
    const std::string directory = i < 4 ? store_of(oracle.node_of(gone[i])) + "/" : "";
    EXPECT_TRUE(says(failure.message, {compose("rank {}", gone[i]), directory})) << failure.message;
  }
}

class NodeLoss : public testing::TestWithParam<Case> {};

TEST_P(NodeLoss, EverySubsetOfNodesIsRecoveredExactlyWithinTheTolerance) {
  const Case& param = GetParam();
  SimulatedJob job(param.nodes * static_cast<int>(param.ranks_per_node));
  set_up(job, param);
  commit_steps(job, {{"step-1", 1}});
  const auto committed = job.disk.snapshot();
  const Oracle oracle(job.disk, param, "step-1");
  for (unsigned pattern = 0; pattern < 1U << static_cast<unsigned>(param.nodes); ++pattern) {
    const Nodes lost = nodes_in(pattern);
    SCOPED_TRACE(compose("lost nodes {:b}", pattern));
    job.disk.restore(committed);
    lose(job, lost);
    const Opened opened = reopen(job);
    if (!oracle.can_be_recovered(lost)) {
      ASSERT_TRUE(opened.failure);
      if (static_cast<int>(lost.size()) < param.nodes) expect_named(*opened.failure, oracle, lost);
      continue;
    }
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.step, 1);
    EXPECT_EQ(opened.info.source, lost.empty() ? RecoverySource::in_place : RecoverySource::rebuilt);
    EXPECT_EQ(opened.level, Level::protected_);
    const int next = static_cast<int>(pattern) % param.nodes;
    lose(job, {next});
    const Opened again = reopen(job);
    ASSERT_FALSE(again.failure) << "then node " << next << ": " << to_string(*again.failure);
    EXPECT_EQ(again.step, 1);
    EXPECT_EQ(again.info.source, RecoverySource::rebuilt);
  }
}

/// Six nodes make sets of each size from two, and of two sizes at once; seven and eight do not add another kind.
std::vector<Case> one_rank_per_node() {
  std::vector<Case> cases;
  for (int nodes = 2; nodes <= (full_test() ? 8 : 6); ++nodes) {
    cases.push_back({Scheme::partner, nodes, 1, 8});
    const auto ranks = static_cast<std::uint32_t>(nodes);
    std::uint32_t sets_before = 0;
    for (std::uint32_t set_size = ranks; set_size >= 2; --set_size) {
      const std::uint32_t sets = (ranks + set_size - 1) / set_size;
      if (sets != sets_before) cases.push_back({Scheme::xor_, nodes, 1, set_size});  // else the sets are the same
      sets_before = sets;
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(OneRankEach, NodeLoss, testing::ValuesIn(one_rank_per_node()), name_of);
INSTANTIATE_TEST_SUITE_P(TwoRanksEach, NodeLoss,
                         testing::Values(Case{Scheme::partner, 4, 2, 8}, Case{Scheme::xor_, 4, 2, 2},
                                         Case{Scheme::xor_, 4, 2, 3}, Case{Scheme::xor_, 4, 2, 4},
                                         Case{Scheme::xor_, 4, 2, 8}, Case{Scheme::partner, 2, 2, 8}),
                         name_of);

/// Sets of 3 to 6 that may lose 1 to 3, each combination of lost nodes; and the largest parity.
std::vector<Case> reed_solomon() {
  std::vector<Case> cases;
  for (int nodes = 3; nodes <= 6; ++nodes) {
    for (std::uint32_t parity = 1; parity <= 3 && static_cast<int>(parity) < nodes; ++parity) {
      cases.push_back({Scheme::rs, nodes, 1, 8, parity});
    }
  }
  cases.push_back({Scheme::rs, 5, 1, 8, 4});
  cases.push_back({Scheme::rs, 6, 1, 3, 2});  // two sets
  cases.push_back({Scheme::rs, 4, 2, 4, 2});  // two ranks on a node
  cases.push_back({Scheme::rs, 7, 1, 4, 2});  // sets of 4 and 3
  return cases;
}
INSTANTIATE_TEST_SUITE_P(ReedSolomon, NodeLoss, testing::ValuesIn(reed_solomon()), name_of);

class NodeAfterNode : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(NodeLoss, NodeAfterNode,
                         testing::Values(Case{Scheme::xor_, 4, 1}, Case{Scheme::xor_, 4, 2}, Case{Scheme::xor_, 3, 1},
                                         Case{Scheme::partner, 4, 1}, Case{Scheme::partner, 4, 2},
                                         Case{Scheme::partner, 5, 1}, Case{Scheme::partner, 2, 1},
                                         Case{Scheme::rs, 4, 1, 8, 2}, Case{Scheme::rs, 5, 2, 5, 3}),
                         name_of);

TEST_P(NodeAfterNode, NodesLostInTurnAreEachRebuiltWithoutANewCommit) {
  const Case& param = GetParam();
  SimulatedJob job(param.nodes * static_cast<int>(param.ranks_per_node));
  set_up(job, param);
  commit_steps(job, {{"step-1", 1}});
  for (int round = 0; round < 2 * param.nodes; ++round) {
    lose(job, {round % param.nodes});
    const Opened opened = reopen(job);
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.step, 1) << "round " << round;
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
    EXPECT_EQ(opened.level, Level::protected_);
    for (int rank = 0; rank < job.ranks; ++rank) EXPECT_LE(container_files(job.disk, rank).size(), 2U);
  }
}

TEST_P(NodeAfterNode, AnUnprotectedNewestGivesWayToTheProtectedOneBefore) {
  const Case& param = GetParam();
  SimulatedJob job(param.nodes * static_cast<int>(param.ranks_per_node));
  set_up(job, param);
  job.options.redundancy.every = 2;
  for (const std::uint32_t keep : {1U, 2U}) {
    job.options.store.keep = keep;
    commit_steps(job, {{"a", 1}, {"b", 2}, {"c", 3}});
    lose(job, {param.nodes - 1});
    const Opened opened = reopen(job);
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.tag, "b");
    EXPECT_EQ(opened.step, 2);
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
    EXPECT_EQ(opened.level, Level::protected_);
    EXPECT_TRUE(job.logged("skipped c"));
  }
}

TEST_P(NodeAfterNode, AnUnrecoverableCommitIsRecoveredWhenANodeIsBack) {
  const Case& param = GetParam();
  const int ranks = param.nodes * static_cast<int>(param.ranks_per_node);
  for (const bool tries_to_go_on : {false, true}) {
    SimulatedJob job(ranks);
    set_up(job, param);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    const auto committed = job.disk.snapshot();
    for (int node = 0; node < param.nodes; ++node) lose(job, {node});
    for (int node = 0; node + 1 < param.nodes; ++node) {
      // One node after the other comes back; all starts but the last find too little.
      job.disk.restore(committed, store_of(node));
      const bool enough = node + 2 == param.nodes;
      if (!enough && tries_to_go_on) {
        expect_all_returned(job.start([&](RankScope& scope) {
          Engine engine = scope.make_engine();
          engine.create("c");
          engine.abandon();
        }));
      }
      const Opened opened = reopen(job);
      if (!enough && opened.failure) {
        EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
        continue;
      }
      ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
      EXPECT_EQ(opened.step, 2);
    }
  }
}

}  // namespace
}  // namespace kedge::faults::node_loss_test
