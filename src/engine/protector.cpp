#include "engine/protector.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "redundancy/plan.hpp"
#include "redundancy/protect.hpp"

namespace kedge::engine {
namespace {

std::uint64_t count_domains(const DomainRuns& domains) {
  std::uint64_t count = 0;
  for (const DomainRun& run : domains) count += run.domains;
  return count;
}

Scheme settle_scheme(const Context& context) {
  const Scheme asked = context.options.redundancy.scheme;
  if (asked != Scheme::automatic) return asked;
  const DomainRuns& domains = context.topology.domains;
  const Scheme best = redundancy::best_scheme(domains);
  if (best == Scheme::xor_ || !context.is_root()) return best;
  if (best == Scheme::partner) {
    context.log.info("two failure domains: every rank's checkpoint gets a full copy on the other (scheme partner)");
  } else if (count_domains(domains) == 1) {
    context.log.info(
        "one failure domain: checkpoints survive the death of processes, not the loss of the node (scheme single)");
  } else {
    context.log.warning(compose("checkpoints are not protected against the loss of a node (scheme single): {}",
                                redundancy::infeasible(domains, Scheme::xor_).value_or("")));
  }
  return best;
}

/// COLLECTIVE. 128 bits that rank 0 drew.
std::optional<Failure> draw(Context& context, Id128& id) {
  std::optional<Failure> local;
  if (context.is_root()) local = attempt([&] { id = random_id(); });
  if (auto failure = context.vote(local)) return failure;
  context.broadcast(id);
  return std::nullopt;
}

/// Local. True if this rank's set files of a protection are here, and its set is the one it would get now.
bool is_mine_whole(Context& context, const Id128& commit_id, const Id128& protection_id) {
  const auto set = context.store->own_set({commit_id, protection_id});
  if (!set || set->scheme != context.redundancy.scheme) return false;
  const std::vector<int>& ranks = context.redundancy.membership.ranks;
  return std::ranges::equal(set->members, ranks, [](const format::SetMember& member, int rank) {
    return member.logical_rank.value == static_cast<std::uint32_t>(rank);
  });
}

/// COLLECTIVE. The protection of which nothing is missing and that fits today's layout; none if there is no such.
Id128 find_protection(Context& context, const Id128& commit_id) {
  // Rank 0 has parity of every protection that is whole: it names them one after the other.
  std::vector<Id128> known;
  if (context.is_root()) known = context.store->own_protections(commit_id);
  std::uint64_t count = known.size();
  context.broadcast(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Id128 candidate = context.is_root() ? known[i] : Id128{};
    context.broadcast(candidate);
    std::uint64_t whole = 0;
    (void)attempt([&] { whole = is_mine_whole(context, commit_id, candidate) ? 1 : 0; });
    context.comm->all_reduce(std::span(&whole, 1), Reduction::min, context.deadline());
    if (whole != 0) return candidate;
  }
  return {};
}

}  // namespace

void join_set(Context& context) {
  const DomainRuns& domains = context.topology.domains;
  const Scheme scheme = settle_scheme(context);
  std::optional<redundancy::Plan> plan;
  const auto failure = attempt([&] { plan.emplace(domains, scheme, context.options.redundancy.set_size); });
  comm::throw_if(context.vote(failure));
  const redundancy::Set set = plan->set_of(context.topology.place);
  context.redundancy.scheme = scheme;
  context.redundancy.set_number = set.number;
  context.redundancy.membership.me = set.position;
  context.redundancy.membership.ranks = comm::ranks_at(*context.comm, context.topology, set.places, context.deadline());
}

std::optional<Failure> protect(Context& context, const Commit& commit) {
  if (context.redundancy.scheme == Scheme::single) return std::nullopt;
  redundancy::Subject subject;
  if (auto failure = draw(context, subject.protection_id)) return failure;
  subject.run_id = context.run_id;
  subject.commit_id = commit.commit_id;
  subject.generation = commit.generation;
  subject.world_size = static_cast<std::uint32_t>(context.comm->size());
  subject.logical_rank = context.logical_rank();
  subject.scheme = context.redundancy.scheme;
  subject.set_number = context.redundancy.set_number;
  const auto protection = redundancy::protect(*context.comm, *context.store, subject, context.redundancy.membership,
                                              context.options.store.durable, context.patience());
  if (protection.failure) return protection.failure;
  context.set_level(commit.commit_id, Level::protected_, subject.protection_id);
  return std::nullopt;
}

void restore_protection(Context& context, const Commit& opened) {
  if (context.redundancy.scheme == Scheme::single) {
    context.set_level(opened.commit_id, Level::local, {});
    return;
  }
  const Id128 protection_id = find_protection(context, opened.commit_id);
  if (!protection_id.is_none()) {
    context.set_level(opened.commit_id, Level::protected_, protection_id);
    return;
  }
  context.set_level(opened.commit_id, Level::local, {});
  if (context.options.redundancy.every == 0) return;
  const double begin_s = context.environment.clock->seconds();
  const std::optional<Failure> failure = protect(context, opened);
  if (!context.is_root()) return;
  if (failure) {
    context.log.warning(
        compose("{} is open and not protected against the loss of a node: {}", opened.tag, to_string(*failure)));
  } else {
    context.log.info(compose("{} is protected again ({}), took {}", opened.tag, to_string(context.redundancy.scheme),
                             human_seconds(context.environment.clock->seconds() - begin_s)));
  }
}

}  // namespace kedge::engine
