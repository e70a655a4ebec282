// A node is lost with its store: what can be had again, and what is protected afterwards.
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "faults/several_starts.hpp"

namespace kedge::faults {
namespace {

std::string store_of(int node) { return compose("/nodes/node{}", node); }

void set_up(SimulatedJob& job, std::uint32_t ranks_per_node, Scheme scheme, std::uint32_t set_size = 8) {
  job.options.topology.ranks_per_node = ranks_per_node;
  job.options.redundancy.scheme = scheme;
  job.options.redundancy.set_size = set_size;
}

struct Case {
  Scheme scheme = Scheme::xor_;
  int ranks = 4;
  std::uint32_t ranks_per_node = 1;
};

class NodeLoss : public testing::TestWithParam<Case> {};

TEST_P(NodeLoss, R31_R32_EachNodeInTurnIsRebuiltAndProtectedAgain) {
  const Case& param = GetParam();
  SimulatedJob job(param.ranks);
  set_up(job, param.ranks_per_node, param.scheme);
  const int nodes = param.ranks / static_cast<int>(param.ranks_per_node);
  int step = 1;
  commit_steps(job, {{"step-1", step}});
  for (int lost = 0; lost < nodes; ++lost) {
    job.disk.remove_all(store_of(lost));
    const Opened opened = reopen(job);
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.step, step) << "node " << lost << " was lost";
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, NodeLoss,
                         testing::Values(Case{Scheme::xor_, 4, 1}, Case{Scheme::xor_, 8, 2}, Case{Scheme::xor_, 3, 1},
                                         Case{Scheme::partner, 4, 1}, Case{Scheme::partner, 8, 2},
                                         Case{Scheme::partner, 5, 1}, Case{Scheme::partner, 2, 1}));

}  // namespace
}  // namespace kedge::faults
