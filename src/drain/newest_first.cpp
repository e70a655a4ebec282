#include "drain/newest_first.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/group.hpp"

namespace kedge::drain {
namespace {

struct Candidate {
  std::size_t pass = 0;
  std::uint64_t may_have = 0;  ///< generation of the newest checkpoint that the pass may have; 0 if it has none
  std::uint64_t floor = 0;     ///< an older one is superseded by the prefix's
};

std::vector<Candidate> candidates_of(const PrefixState& prefix, std::span<const FlushPass> passes) {
  std::vector<Candidate> candidates;
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    // A start with as many ranks as saved the prefix's checkpoint sees by itself whether that can be used.
    const bool is_of_prefix = passes[pass].layout.world_size == prefix.world_size;
    candidates.push_back({pass, passes[pass].newest_checkpoint, is_of_prefix ? 0 : prefix.generation + 1});
  }
  return candidates;
}

/// The least generation of a checkpoint that nothing newer can displace.
std::uint64_t bound_of(const Candidate& candidate, std::span<const Candidate> all) {
  std::uint64_t bound = candidate.floor;
  for (const Candidate& other : all) {
    if (other.pass != candidate.pass) bound = std::max(bound, other.may_have);
  }
  return bound;
}

void add(std::optional<Failure>& failure, const Failure& more) {
  if (!failure) failure = more;
  else failure->message += "; " + more.message;
}

}  // namespace

Search flush_newest_of(const PrefixState& prefix, std::span<const FlushPass> passes, const TryPass& try_pass) {
  std::vector<Candidate> candidates = candidates_of(prefix, passes);
  Search search;
  std::optional<Failure> unrecoverable;
  bool is_prefix_lost = prefix.generation == 0;
  while (true) {
    const auto next = std::ranges::max_element(candidates, {}, &Candidate::may_have);
    if (next == candidates.end() || next->may_have == 0) break;
    Tried tried;
    try {
      tried = try_pass(next->pass, bound_of(*next, candidates));
    } catch (const Error& error) {
      if (comm::ends_communication(error.code())) throw;
      if (error.code() != ErrorCode::unrecoverable) return {std::nullopt, error.failure()};
      add(unrecoverable, error.failure());
      is_prefix_lost = is_prefix_lost || passes[next->pass].layout.world_size == prefix.world_size;
    }
    if (tried.is_flushed || tried.was_there) search.found = next->pass;
    if (tried.is_flushed) return search;
    next->may_have = tried.was_there || tried.generation < next->floor ? 0 : tried.generation;
  }
  if (!search.found && is_prefix_lost) search.failure = unrecoverable;
  return search;
}

}  // namespace kedge::drain
