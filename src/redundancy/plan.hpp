// Pure. Assigns ranks to redundancy sets, without ever building the whole assignment. Ranks are numbered by failure
// domain: the ranks of a domain have consecutive *sorted ranks* (comm/topology.hpp). With K sets, sorted rank p belongs
// to set p mod K. No domain has more than K ranks, so the members of a set are in different domains, and set sizes
// differ by at most one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/domain_counts.hpp"
#include "kedge/options.hpp"

namespace kedge::redundancy {

/// The redundancy set of a sorted rank.
struct RedundancySet {
  std::uint64_t number = 0;
  std::uint32_t position = 0;               ///< position of the requested sorted rank
  std::vector<std::uint64_t> sorted_ranks;  ///< sorted ranks of the members, ascending
};

/// A scheme, and for rs the number of tolerated losses per set.
struct Redundancy {
  // Implicit, because all schemes except rs have no parameter.
  Redundancy(Scheme its_scheme, std::uint32_t its_parity = 1)  // NOLINT(google-explicit-constructor)
      : scheme(its_scheme), parity(its_parity) {}

  Scheme scheme;
  std::uint32_t parity;
};

/// Returns how many members of a set may be lost with all their files: 0 for single, 1 for partner and xor, m for rs.
[[nodiscard]] std::uint32_t tolerance(const Redundancy& redundancy) noexcept;

/// Returns why the scheme cannot protect this layout, with the numbers and the remedy; nothing if it can. It can iff
/// the largest domain has at most floor(ranks / (tolerance + 1)) ranks.
[[nodiscard]] std::optional<std::string> check_feasibility(const DomainCounts& domains, const Redundancy& redundancy);

/// The automatic scheme: xor for three or more domains, partner for two, single if neither is possible.
[[nodiscard]] Scheme best_scheme(const DomainCounts& domains);

class Plan {
 public:
  /// Throws Error{invalid_argument} if infeasible. Sets of xor and rs have at most `set_size` members, which must
  /// exceed the tolerance, or more if the layout requires it. Sets of partner are pairs, with one set of three for an
  /// odd number of ranks. single has no sets.
  Plan(DomainCounts domains, const Redundancy& redundancy, std::uint32_t set_size);

  [[nodiscard]] Scheme scheme() const noexcept { return scheme_; }
  [[nodiscard]] std::uint64_t rank_count() const noexcept { return rank_count_; }
  [[nodiscard]] std::uint64_t set_count() const noexcept { return set_count_; }
  /// The set of a sorted rank; for single, a set of its own.
  [[nodiscard]] RedundancySet find_set(std::uint64_t sorted_rank) const;
  /// The failure domain of a sorted rank, numbered from the largest domain.
  [[nodiscard]] std::uint64_t domain_of(std::uint64_t sorted_rank) const;

 private:
  DomainCounts domains_;
  Scheme scheme_;
  std::uint64_t rank_count_ = 0;
  std::uint64_t set_count_ = 0;
};

}  // namespace kedge::redundancy
