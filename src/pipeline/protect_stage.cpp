#include "pipeline/protect_stage.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "redundancy/protect.hpp"

namespace kedge::pipeline {

std::optional<Failure> ProtectStage::run(const comm::Group& group, const CommitFiles& files) {
  redundancy::Subject subject;
  if (auto failure = group.try_root_decides(subject.protection_id, random_id)) return failure;
  subject.commit = files.commit;
  subject.logical_rank = files.logical_rank;
  subject.container = &*files.container;
  subject.scheme = settings_.assignment.scheme;
  subject.parities = settings_.assignment.parities;
  subject.set_number = settings_.assignment.set_number;
  const redundancy::Traffic traffic{redundancy::Route::direct, settings_.pieces};
  const auto protection =
      redundancy::protect(group, store_, subject, settings_.assignment.membership, settings_.durable, traffic);
  if (protection.failure) return protection.failure;
  ledger_.protect(files.commit.id, subject.protection_id);
  return std::nullopt;
}

/// Local. True if this rank's set files of a protection are here, and its set is the one that it would get now.
bool ProtectStage::is_mine_whole(const Id128& commit_id, const Id128& protection_id) const {
  const auto set = store_.own_set({commit_id, protection_id});
  const redundancy::Assignment& now = settings_.assignment;
  if (!set || set->scheme != now.scheme || set->parities != now.parities) return false;
  return std::ranges::equal(set->members, now.membership.ranks, [](const format::SetMember& member, int rank) {
    return member.logical_rank.value == static_cast<std::uint32_t>(rank);
  });
}

Protections ProtectStage::find(const comm::Group& group, const Id128& commit_id, LogicalRank logical_rank) const {
  Protections found;
  std::uint64_t most = 0;
  std::vector<Id128> mine = store_.own_protections(commit_id);
  while (const std::optional<int> speaker = group.lowest_with(!mine.empty())) {
    Id128 id = mine.empty() ? Id128{} : mine.front();
    group.broadcast(id, *speaker);
    std::erase(mine, id);

    const auto has = [&](store::FileKind kind) {
      return store_.has(kind, logical_rank, {commit_id, id}) ? std::uint64_t{1} : 0;
    };
    std::uint64_t whole = 0;
    (void)attempt([&] { whole = is_mine_whole(commit_id, id) ? 1 : 0; });
    // Parity counts for more: it has a copy of the descriptor.
    const auto sums = group.sum(
        std::array<std::uint64_t, 2>{whole, 2 * has(store::FileKind::parity) + has(store::FileKind::descriptor)});
    if (sums[0] == group.world_size()) {
      found.whole = id;
      return found;
    }
    if (sums[1] > most) {
      most = sums[1];
      found.best = id;
    }
  }
  return found;
}

}  // namespace kedge::pipeline
