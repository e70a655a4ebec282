// Which ranks protect each other: pure, and never built whole.
//
// Ranks are counted by *place*: in the order of their failure domains, so that the ranks of one domain have
// consecutive places (comm/topology.hpp finds them). With K sets, place p belongs to set p mod K: as no domain has more
// than K ranks, the members of a set lie in different domains, and set sizes differ by at most one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/domain_counts.hpp"
#include "kedge/options.hpp"

namespace kedge::redundancy {

/// The redundancy set of one place.
struct Set {
  std::uint64_t number = 0;
  std::uint32_t position = 0;         ///< of the place that was asked for
  std::vector<std::uint64_t> places;  ///< of the members, by position; ascending
};

/// A scheme, and for rs how many members of a set may be lost.
struct Redundancy {
  // Implicit, because all schemes but rs are all there is to say.
  Redundancy(Scheme its_scheme, std::uint32_t its_parity = 1)  // NOLINT(google-explicit-constructor)
      : scheme(its_scheme), parity(its_parity) {}

  Scheme scheme;
  std::uint32_t parity;
};

/// How many members of a set may be lost with all they hold: 0 for single, 1 for partner and xor, m for rs.
[[nodiscard]] std::uint32_t tolerance(const Redundancy& redundancy) noexcept;

/// Why the scheme cannot protect ranks that are spread like this, with the numbers and what to do; nothing if it can.
/// It can iff the largest domain has at most floor(ranks / (tolerance + 1)) ranks.
[[nodiscard]] std::optional<std::string> check_feasible(const DomainCounts& domains, const Redundancy& redundancy);

/// The scheme for Scheme::automatic: xor over three domains and more, partner over two, single where neither can be.
[[nodiscard]] Scheme best_scheme(const DomainCounts& domains);

class Plan {
 public:
  /// Throws Error{invalid_argument} if infeasible. Sets of xor and rs have up to `set_size` members, which must be more
  /// than may be lost, and more only where the layout leaves no other way; those of partner are pairs, one of three if
  /// the ranks are odd; single has none.
  Plan(DomainCounts domains, const Redundancy& redundancy, std::uint32_t set_size);

  [[nodiscard]] Scheme scheme() const noexcept { return scheme_; }
  [[nodiscard]] std::uint64_t ranks() const noexcept { return ranks_; }
  /// Number of sets; 0 for single.
  [[nodiscard]] std::uint64_t sets() const noexcept { return sets_; }
  /// The set of one place; for single a set of this place alone.
  [[nodiscard]] Set set_of(std::uint64_t place) const;
  /// Number of the failure domain that a place belongs to, largest domain first.
  [[nodiscard]] std::uint64_t domain_of(std::uint64_t place) const;

 private:
  DomainCounts domains_;
  Scheme scheme_;
  std::uint64_t ranks_ = 0;
  std::uint64_t sets_ = 0;
};

}  // namespace kedge::redundancy
