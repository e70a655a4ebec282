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

/// Reed-Solomon with one parity is xor, which needs no multiplication.
redundancy::Redundancy settle_scheme(const Context& context) {
  const auto& asked = context.options.redundancy;
  if (asked.scheme == Scheme::rs && asked.parity == 1) return Scheme::xor_;
  if (asked.scheme == Scheme::rs) return {Scheme::rs, asked.parity};
  if (asked.scheme != Scheme::automatic) return asked.scheme;
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
  if (!set || set->scheme != context.redundancy.scheme || set->parities != context.redundancy.parities) return false;
  const std::vector<int>& ranks = context.redundancy.membership.ranks;
  return std::ranges::equal(set->members, ranks, [](const format::SetMember& member, int rank) {
    return member.logical_rank.value == static_cast<std::uint32_t>(rank);
  });
}

/// What the ranks have of the protections of one commit.
struct Protections {
  Id128 whole;  ///< of which nothing is missing and that fits today's layout; none if there is no such
  Id128 best;   ///< else the one of which most is there
};

/// COLLECTIVE. One round for each protection of which anything is there.
Protections find_protections(Context& context, const Id128& commit_id) {
  const auto nobody = static_cast<std::uint64_t>(context.comm->size());
  Protections found;
  std::uint64_t most = 0;
  std::vector<Id128> mine = context.store->own_protections(commit_id);
  while (true) {
    std::uint64_t speaker = mine.empty() ? nobody : static_cast<std::uint64_t>(context.rank());
    context.comm->all_reduce(std::span(&speaker, 1), Reduction::min, context.deadline());
    if (speaker == nobody) return found;
    Id128 id = mine.empty() ? Id128{} : mine.front();
    context.comm->broadcast(std::as_writable_bytes(std::span(&id, 1)), static_cast<int>(speaker), context.deadline());
    std::erase(mine, id);

    const auto has = [&](store::FileKind kind) {
      return context.store->has(kind, context.logical_rank(), {commit_id, id}) ? std::uint64_t{1} : 0;
    };
    std::uint64_t whole = 0;
    (void)attempt([&] { whole = is_mine_whole(context, commit_id, id) ? 1 : 0; });
    // Parity counts for more: it has a copy of the descriptor.
    std::array<std::uint64_t, 2> sums = {whole, 2 * has(store::FileKind::parity) + has(store::FileKind::descriptor)};
    context.comm->all_reduce(sums, Reduction::sum, context.deadline());
    if (sums[0] == nobody) {
      found.whole = id;
      return found;
    }
    if (sums[1] > most) {
      most = sums[1];
      found.best = id;
    }
  }
}

/// COLLECTIVE. The failure, the same on every rank; it is logged.
std::optional<Failure> protect_again(Context& context, const commits::Entry& opened) {
  const double begin_s = context.environment.clock->seconds();
  std::optional<Failure> failure = protect(context, opened);
  if (context.is_root() && failure) {
    context.log.warning(
        compose("{} is open and not protected against the loss of a node: {}", opened.commit.tag, to_string(*failure)));
  } else if (context.is_root()) {
    context.log.info(compose("{} is protected again ({}), took {}", opened.commit.tag,
                             to_string(context.redundancy.scheme),
                             human_seconds(context.environment.clock->seconds() - begin_s)));
  }
  return failure;
}

/// COLLECTIVE. Removes what lies on nodes that its owners have left; true if there was any. What cannot be removed only
/// costs space: it goes at the latest when its commit is retired.
bool drop_left_behind(Context& context, const commits::Entry& opened) {
  std::uint64_t dropped = 0;
  (void)attempt([&] { dropped = context.store->drop_adopted(opened.commit.id); });
  context.comm->all_reduce(std::span(&dropped, 1), Reduction::max, context.deadline());
  return dropped != 0;
}

}  // namespace

redundancy::PieceSettings piece_settings(const Options& options) {
  return {options.redundancy.piece_bytes, options.redundancy.depth};
}

void join_set(Context& context) {
  const DomainRuns& domains = context.topology.domains;
  const redundancy::Redundancy settled = settle_scheme(context);
  std::optional<redundancy::Plan> plan;
  const auto failure = attempt([&] { plan.emplace(domains, settled, context.options.redundancy.set_size); });
  comm::throw_if(context.vote(failure));
  const redundancy::Set set = plan->set_of(context.topology.place);
  context.redundancy.scheme = settled.scheme;
  context.redundancy.parities = settled.parity;
  context.redundancy.set_number = set.number;
  context.redundancy.membership.me = set.position;
  context.redundancy.membership.ranks = comm::ranks_at(*context.comm, context.topology, set.places, context.deadline());
  const auto nobody = static_cast<std::uint64_t>(context.comm->size());
  const bool with_root = std::ranges::binary_search(context.topology.domain, 0);
  std::uint64_t second = with_root ? nobody : static_cast<std::uint64_t>(context.rank());
  context.comm->all_reduce(std::span(&second, 1), Reduction::min, context.deadline());
  context.redundancy.second_manifest = second == nobody ? -1 : static_cast<int>(second);
}

std::optional<Failure> protect(Context& context, const commits::Entry& commit) {
  if (context.redundancy.scheme == Scheme::single) return std::nullopt;
  redundancy::Subject subject;
  if (auto failure = draw(context, subject.protection_id)) return failure;
  subject.commit = commit.commit;
  subject.logical_rank = context.logical_rank();
  subject.scheme = context.redundancy.scheme;
  subject.parities = context.redundancy.parities;
  subject.set_number = context.redundancy.set_number;
  const redundancy::Traffic traffic{redundancy::Route::direct, piece_settings(context.options), context.patience()};
  const auto protection = redundancy::protect(*context.comm, *context.store, subject, context.redundancy.membership,
                                              context.options.store.durable, traffic);
  if (protection.failure) return protection.failure;
  context.ledger.protect(commit.commit.id, subject.protection_id);
  return std::nullopt;
}

void restore_protection(Context& context, const commits::Entry& opened) {
  if (context.redundancy.scheme == Scheme::single) {
    context.ledger.unprotect(opened.commit.id, {});
    (void)drop_left_behind(context, opened);
    return;
  }
  const Protections found = find_protections(context, opened.commit.id);
  const bool is_protected = !found.whole.is_none();
  if (is_protected) context.ledger.protect(opened.commit.id, found.whole);
  else context.ledger.unprotect(opened.commit.id, found.best);
  std::optional<Failure> failure;
  if (!is_protected && context.options.redundancy.every != 0) {
    context.retire();  // what starts that died in this left half made must not add up
    failure = protect_again(context, opened);
  }
  // Where there is no room for both, what the commit left behind is worth less than its new protection.
  if (failure && failure->code != ErrorCode::no_space) return;
  const bool room_was_made = drop_left_behind(context, opened);
  if (failure && room_was_made) (void)protect_again(context, opened);
}

}  // namespace kedge::engine
