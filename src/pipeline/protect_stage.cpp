#include "pipeline/protect_stage.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "redundancy/protect.hpp"
#include "store/pin.hpp"

namespace kedge::pipeline {
namespace {

/// Protections of which the rank has parity or descriptor.
std::set<Id128> own_protections(const std::vector<store::PinnableFile>& files, LogicalRank mine) {
  std::set<Id128> protections;
  for (const store::PinnableFile& file : files) {
    const bool is_set_file = file.kind == store::FileKind::parity || file.kind == store::FileKind::descriptor;
    if (file.owner == mine && is_set_file) protections.insert(file.key.protection_id);
  }
  return protections;
}

/// Throws not_found, io, corrupt.
format::SetDescriptor read_set(store::StoredFiles& files, LogicalRank mine, const store::FileKey& key) {
  const store::Pin file(files, store::FileKind::descriptor, mine, key);
  format::SetDescriptorBytes bytes{};
  file->bytes().read(0, bytes);
  return format::decode_set_descriptor(bytes, file->path());
}

}  // namespace

std::optional<Failure> ProtectStage::run(const comm::Group& group, const CommitFiles& files) {
  redundancy::ProtectRequest subject;
  if (auto failure = group.try_decide_on_root(subject.protection_id, random_id)) return failure;
  subject.commit = files.commit;
  subject.logical_rank = group.logical_rank();
  subject.container = &*files.container;
  subject.scheme = settings_.assignment.scheme;
  subject.parity_count = settings_.assignment.parity_count;
  subject.set_number = settings_.assignment.set_number;
  const redundancy::ExchangeSettings traffic{redundancy::Route::direct, settings_.pieces};
  const auto protection =
      redundancy::protect(group, store_, subject, settings_.assignment.membership, settings_.durable, traffic);
  if (protection.failure) return protection.failure;
  ledger_.set_protected(files.commit.id, subject.protection_id);
  return std::nullopt;
}

std::string ProtectStage::failure_warning(const CommitHead& commit, const Failure& failure,
                                          std::uint64_t /*tries*/) const {
  return compose("{} is not protected against the loss of a node: {}", commit.tag, to_string(failure));
}

/// Local. Whether the set equals the one that this rank would get today.
bool ProtectStage::is_current(const format::SetDescriptor& set) const {
  const redundancy::RedundancySetAssignment& now = settings_.assignment;
  if (set.scheme != now.scheme || set.parity_count != now.parity_count) return false;
  return std::ranges::equal(set.members, now.membership.ranks, [](const format::SetMember& member, int rank) {
    return member.logical_rank.value == static_cast<std::uint32_t>(rank);
  });
}

/// Local. Whether no other member shares this rank's failure domain.
bool ProtectStage::is_sound(const format::SetDescriptor& set) const {
  const std::vector<int>& domain = settings_.assignment.domain_ranks;
  return std::ranges::count_if(set.members, [&](const format::SetMember& member) {
           return std::ranges::binary_search(domain, static_cast<int>(member.logical_rank.value));
         }) == 1;
}

Protections ProtectStage::find_protections(const comm::Group& group, const Id128& commit_id) const {
  Protections found;
  std::uint64_t most = 0;
  std::set<Id128> mine = own_protections(store_.files.list_pinnable(commit_id), group.logical_rank());
  while (const std::optional<int> speaker = group.lowest_rank_with(!mine.empty())) {
    Id128 id = mine.empty() ? Id128{} : *mine.begin();
    group.broadcast(id, *speaker);
    mine.erase(id);

    const auto has = [&](store::FileKind kind) {
      return store_.files.has_file(kind, group.logical_rank(), {commit_id, id}) ? std::uint64_t{1} : 0;
    };
    std::optional<format::SetDescriptor> set;  // if this rank has files of it
    (void)attempt([&] {
      if (has(store::FileKind::parity) != 0) set = read_set(store_.files, group.logical_rank(), {commit_id, id});
    });
    // Parity counts more because it begins with the descriptor.
    const auto sums =
        group.sum(std::array<std::uint64_t, 3>{set && is_current(*set) ? 1U : 0U, set && is_sound(*set) ? 1U : 0U,
                                               2 * has(store::FileKind::parity) + has(store::FileKind::descriptor)});
    if (sums[0] == group.world_size()) {
      found.current = id;
      return found;
    }
    if (sums[1] == group.world_size()) found.across_domains = id;
    if (sums[2] > most) {
      most = sums[2];
      found.most_complete = id;
    }
  }
  return found;
}

}  // namespace kedge::pipeline
