// Redundancy sets of a large job: the set of every place, as all ranks together ask for it.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "redundancy/plan.hpp"
#include "require.hpp"

namespace kedge_bench {
namespace {

using kedge::redundancy::Plan;
using kedge::redundancy::Redundancy;

constexpr std::uint32_t kSetSize = 8;

/// Nodes of 8 ranks, but the last of 4.
kedge::DomainCounts layout(std::uint64_t ranks) {
  if (ranks % 8 == 0) return {{ranks / 8, 8}};
  return {{ranks / 8, 8}, {1, ranks % 8}};
}

void check(const Plan& plan, std::uint64_t losses) {
  for (std::uint64_t place = 0; place < plan.rank_count(); ++place) {
    const auto set = plan.find_set(place);
    require(set.sorted_ranks.size() > losses && set.sorted_ranks.at(set.position) == place, "place in its set");
    for (std::size_t i = 1; i < set.sorted_ranks.size(); ++i) {
      require(plan.domain_of(set.sorted_ranks[i - 1]) != plan.domain_of(set.sorted_ranks[i]),
              "two of one node in a set");
    }
  }
}

void sets_of_all_places(benchmark::State& state, const Redundancy& redundancy) {
  const auto ranks = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t members = 0;
  for (auto _ : state) {
    const Plan plan(layout(ranks), redundancy, kSetSize);
    members = 0;
    for (std::uint64_t place = 0; place < ranks; ++place) members += plan.find_set(place).sorted_ranks.size();
  }
  require(members >= 2 * ranks, "members of sets");
  check(Plan(layout(ranks), redundancy, kSetSize), tolerance(redundancy));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void plan_xor(benchmark::State& state) { sets_of_all_places(state, kedge::Scheme::xor_); }
void plan_rs(benchmark::State& state) { sets_of_all_places(state, {kedge::Scheme::rs, 2}); }

BENCHMARK(plan_xor)->Arg(1'000)->Arg(100'000)->Arg(100'004)->Unit(benchmark::kMicrosecond);
BENCHMARK(plan_rs)->Arg(1'000)->Arg(100'000)->Arg(100'004)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace kedge_bench
