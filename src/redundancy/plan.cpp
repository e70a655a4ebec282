#include "redundancy/plan.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::redundancy {
namespace {

std::uint64_t count_ranks(const DomainCounts& domains) {
  std::uint64_t ranks = 0;
  for (const auto& [count, ranks_each] : domains) ranks += count * ranks_each;
  return ranks;
}

std::uint64_t largest_domain(const DomainCounts& domains) {
  return domains.empty() ? 0 : domains.front().ranks_per_domain;
}

std::string name_of(const Redundancy& redundancy) {
  if (redundancy.scheme == Scheme::rs) return compose("rs with parity {}", redundancy.parity);
  return std::string(to_string(redundancy.scheme));
}

void require_descending(const DomainCounts& domains) {
  const bool filled =
      std::ranges::all_of(domains, [](const auto& r) { return r.domain_count > 0 && r.ranks_per_domain > 0; });
  const auto not_larger = [](const auto& a, const auto& b) { return a.ranks_per_domain <= b.ranks_per_domain; };
  const bool descending = std::ranges::adjacent_find(domains, not_larger) == domains.end();
  if (!domains.empty() && filled && descending) return;
  throw Error(ErrorCode::invalid_argument,
              "a plan needs failure domains of at least one rank each, larger ones first, each size once");
}

}  // namespace

std::uint32_t tolerance(const Redundancy& redundancy) noexcept {
  switch (redundancy.scheme) {
    case Scheme::partner:
    case Scheme::xor_: return 1;
    case Scheme::rs: return redundancy.parity;
    case Scheme::automatic:
    case Scheme::single: break;
  }
  return 0;
}

std::optional<std::string> check_feasibility(const DomainCounts& domains, const Redundancy& redundancy) {
  const std::uint64_t ranks = count_ranks(domains);
  const std::uint64_t largest = largest_domain(domains);
  const std::uint64_t most = ranks / (tolerance(redundancy) + 1U);
  if (largest <= most) return std::nullopt;
  return compose(
      "redundancy.scheme {} cannot protect {} ranks of which {} are in one failure domain, where at most {} can be; "
      "spread the ranks over more nodes, or set redundancy.scheme to {}",
      name_of(redundancy), ranks, largest, most, redundancy.scheme == Scheme::rs ? "xor or single" : "single");
}

Scheme best_scheme(const DomainCounts& domains) {
  std::uint64_t count = 0;
  for (const DomainCount& run : domains) count += run.domain_count;
  if (count < 2 || check_feasibility(domains, Scheme::xor_)) return Scheme::single;
  return count == 2 ? Scheme::partner : Scheme::xor_;
}

Plan::Plan(DomainCounts domains, const Redundancy& redundancy, std::uint32_t set_size)
    : domains_(std::move(domains)), scheme_(redundancy.scheme), rank_count_(count_ranks(domains_)) {
  require_descending(domains_);
  if (scheme_ == Scheme::automatic) {
    throw Error(ErrorCode::invalid_argument, "a plan needs a definite scheme; call best_scheme for automatic");
  }
  if (scheme_ == Scheme::single) return;
  if (const auto why = check_feasibility(domains_, redundancy)) throw Error(ErrorCode::invalid_argument, *why);
  const std::uint64_t most_sets = rank_count_ / (tolerance(redundancy) + 1U);  // with sets of the minimal size
  if (scheme_ == Scheme::partner) {
    set_count_ = most_sets;
    return;
  }
  if (set_size <= tolerance(redundancy)) {
    throw Error(ErrorCode::invalid_argument,
                compose("redundancy.set_size {} is too small for {}: a set needs {} members; raise redundancy.set_size",
                        set_size, name_of(redundancy), tolerance(redundancy) + 1U));
  }
  const std::uint64_t wanted = (rank_count_ + set_size - 1) / set_size;
  set_count_ = std::min(std::max(largest_domain(domains_), wanted), most_sets);
}

RedundancySet Plan::find_set(std::uint64_t sorted_rank) const {
  if (sorted_rank >= rank_count_) {
    throw Error(ErrorCode::invalid_argument,
                compose("there is no sorted rank {}; sorted ranks are 0 to {}", sorted_rank, rank_count_ - 1));
  }
  if (set_count_ == 0) return {sorted_rank, 0, {sorted_rank}};
  RedundancySet set{sorted_rank % set_count_, static_cast<std::uint32_t>(sorted_rank / set_count_), {}};
  set.sorted_ranks.reserve(rank_count_ / set_count_ + 1);
  for (std::uint64_t member = set.number; member < rank_count_; member += set_count_)
    set.sorted_ranks.push_back(member);
  return set;
}

std::uint64_t Plan::domain_of(std::uint64_t sorted_rank) const {
  std::uint64_t domain = 0;
  for (const auto& [count, ranks_each] : domains_) {
    if (sorted_rank < count * ranks_each) return domain + sorted_rank / ranks_each;
    sorted_rank -= count * ranks_each;
    domain += count;
  }
  throw Error(ErrorCode::invalid_argument,
              compose("there is no sorted rank {} beyond the last one, {}", sorted_rank, rank_count_ - 1));
}

}  // namespace kedge::redundancy
