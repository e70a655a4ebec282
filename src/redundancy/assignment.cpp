#include "redundancy/assignment.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "redundancy/plan.hpp"

namespace kedge::redundancy {
namespace {

std::uint64_t count_domains(const DomainCounts& domains) {
  std::uint64_t count = 0;
  for (const DomainCount& run : domains) count += run.domain_count;
  return count;
}

/// Reed-Solomon with one parity is replaced by xor, which needs no multiplication.
Redundancy choose_scheme(const DomainCounts& domains, const Options::Redundancy& options) {
  if (options.scheme == Scheme::rs && options.parity == 1) return Scheme::xor_;
  if (options.scheme == Scheme::rs) return {Scheme::rs, options.parity};
  return options.scheme == Scheme::automatic ? best_scheme(domains) : options.scheme;
}

}  // namespace

RedundancySetAssignment assign_redundancy_set(const comm::Group& group, const comm::Topology& topology,
                                              const Options::Redundancy& options, bool or_single) {
  Redundancy settled = choose_scheme(topology.domain_counts, options);
  if (or_single && check_feasibility(topology.domain_counts, settled)) settled = Scheme::single;
  std::optional<Plan> plan;
  group.run_on_all_ranks([&] { plan.emplace(topology.domain_counts, settled, options.set_size); });
  const RedundancySet set = plan->find_set(topology.sorted_rank);
  RedundancySetAssignment assignment;
  assignment.scheme = settled.scheme;
  assignment.parity_count = settled.parity;
  assignment.set_number = set.number;
  assignment.membership.own_position = set.position;
  assignment.membership.ranks =
      comm::find_ranks_by_sorted_rank(group.communicator(), topology, set.sorted_ranks, group.deadline());
  assignment.domain_ranks = topology.domain_ranks;
  assignment.second_root = group.lowest_rank_with(!std::ranges::binary_search(topology.domain_ranks, 0));
  return assignment;
}

void log_automatic_scheme(const comm::Topology& topology, const Options::Redundancy& options, const Log& log) {
  if (options.scheme != Scheme::automatic) return;
  const DomainCounts& domains = topology.domain_counts;
  const Scheme chosen = best_scheme(domains);
  if (chosen == Scheme::xor_) return;
  if (chosen == Scheme::partner) {
    log.info("two failure domains: every rank's checkpoint gets a full copy in the other one (scheme partner)");
  } else if (count_domains(domains) == 1) {
    log.info(
        "one failure domain: checkpoints survive the death of processes, not the loss of the node (scheme single)");
  } else {
    log.warning(compose("checkpoints are not protected against the loss of a node (scheme single): {}",
                        check_feasibility(domains, Scheme::xor_).value_or("")));
  }
}

}  // namespace kedge::redundancy
