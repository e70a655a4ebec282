#include "pipeline/protect_stage.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "redundancy/protect.hpp"

namespace kedge::pipeline {

std::optional<Failure> ProtectStage::run(const comm::Group& group, const CommitFiles& files) {
  redundancy::ProtectRequest subject;
  if (auto failure = group.try_decide_on_root(subject.protection_id, random_id)) return failure;
  subject.commit = files.commit;
  subject.logical_rank = group.logical_rank();
  subject.container = &*files.container;
  subject.scheme = settings_.assignment.scheme;
  subject.parities = settings_.assignment.parities;
  subject.set_number = settings_.assignment.set_number;
  const redundancy::ExchangeSettings traffic{redundancy::Route::direct, settings_.pieces};
  const auto protection =
      redundancy::protect(group, store_, subject, settings_.assignment.membership, settings_.durable, traffic);
  if (protection.failure) return protection.failure;
  ledger_.protect(files.commit.id, subject.protection_id);
  return std::nullopt;
}

std::string ProtectStage::warning(const CommitHead& commit, const Failure& failure, std::uint64_t /*tries*/) const {
  return compose("{} is not protected against the loss of a node: {}", commit.tag, to_string(failure));
}

/// Local. Whether the set equals the one that this rank would get today.
bool ProtectStage::is_current(const format::SetDescriptor& set) const {
  const redundancy::SetAssignment& now = settings_.assignment;
  if (set.scheme != now.scheme || set.parities != now.parities) return false;
  return std::ranges::equal(set.members, now.membership.ranks, [](const format::SetMember& member, int rank) {
    return member.logical_rank.value == static_cast<std::uint32_t>(rank);
  });
}

/// Local. Whether no other member shares this rank's failure domain.
bool ProtectStage::is_sound(const format::SetDescriptor& set) const {
  const std::vector<int>& domain = settings_.assignment.domain;
  return std::ranges::count_if(set.members, [&](const format::SetMember& member) {
           return std::ranges::binary_search(domain, static_cast<int>(member.logical_rank.value));
         }) == 1;
}

Protections ProtectStage::find(const comm::Group& group, const Id128& commit_id) const {
  Protections found;
  std::uint64_t most = 0;
  std::vector<Id128> mine = store_.own_protections(commit_id);
  while (const std::optional<int> speaker = group.lowest_rank_with(!mine.empty())) {
    Id128 id = mine.empty() ? Id128{} : mine.front();
    group.broadcast(id, *speaker);
    std::erase(mine, id);

    const auto has = [&](store::FileKind kind) {
      return store_.has(kind, group.logical_rank(), {commit_id, id}) ? std::uint64_t{1} : 0;
    };
    std::optional<format::SetDescriptor> set;  // if this rank has files of it
    (void)attempt([&] { set = store_.own_set({commit_id, id}); });
    // Parity counts more because it begins with the descriptor.
    const auto sums =
        group.sum(std::array<std::uint64_t, 3>{set && is_current(*set) ? 1U : 0U, set && is_sound(*set) ? 1U : 0U,
                                               2 * has(store::FileKind::parity) + has(store::FileKind::descriptor)});
    if (sums[0] == group.world_size()) {
      found.current = id;
      return found;
    }
    if (sums[1] == group.world_size()) found.sound = id;
    if (sums[2] > most) {
      most = sums[2];
      found.best = id;
    }
  }
  return found;
}

}  // namespace kedge::pipeline
