#include "recovery/homes.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "comm/records.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::recovery {
namespace {

using comm::Addressed;

// Records between processes of one job, never stored.
struct ContainerRecord {
  RankKey key;
  std::uint64_t size_bytes = 0;
};

struct SetFileRecord {
  format::SetDescriptorBytes bytes{};
};

/// Home of a set to the homes of its members' logical ranks: who has this container?
struct Question {
  RankKey key;
  std::uint32_t set_index = 0;
  std::uint32_t position = 0;
};

struct Answer {
  std::uint32_t set_index = 0;
  std::uint32_t position = 0;
  int holder = kNoProcess;
};

struct Offer {
  RankKey key;
  SetOffer offer;
};

/// What makes a set one set.
using SetKey = std::tuple<Id128, Id128, std::uint64_t>;

SetKey key_of(const format::SetDescriptor& set) { return {set.commit_id, set.protection_id, set.set_number}; }

/// Ids are random: any part of them spreads the homes.
int home_of(const format::SetDescriptor& set, int processes) {
  std::uint64_t value = 0;
  std::memcpy(&value, set.protection_id.bytes.data(), sizeof value);
  return static_cast<int>((value + set.set_number) % static_cast<std::uint64_t>(processes));
}

int home_of(const RankKey& key, int processes) {
  return static_cast<int>(key.logical_rank % static_cast<std::uint32_t>(processes));
}

RankKey rank_key(const format::SetDescriptor& set, std::size_t position) {
  return {set.generation, set.commit_id, set.world_size, set.members[position].logical_rank.value};
}

/// Of several holders the owner needs no move; else the lowest.
void offer_holder(int& holder, int candidate, int owner) {
  if (holder == owner) return;
  if (holder == kNoProcess || candidate == owner || candidate < holder) holder = candidate;
}

class Teller {
 public:
  Teller(Communicator& communicator, const Holdings& mine, Deadline deadline)
      : communicator_(communicator), mine_(mine), deadline_(deadline) {}

  Homes run() {
    tell_containers();
    std::uint64_t set_files = mine_.set_files.size();
    communicator_.all_reduce(std::span(&set_files, 1), Reduction::sum, deadline_);
    if (set_files != 0) {
      tell_set_files();
      ask_for_containers();
      offer();
    }
    return std::move(homes_);
  }

 private:
  template <class Record>
  std::vector<Addressed<Record>> exchange(const std::vector<Addressed<Record>>& records) {
    return comm::exchange_records(communicator_, records, deadline_);
  }

  /// Damaged containers are not told: they count as missing.
  void tell_containers() {
    std::vector<Addressed<ContainerRecord>> records;
    for (const Holding& holding : mine_.containers) {
      if (!holding.intact || holding.logical_rank.value >= holding.commit.world_size) continue;
      const RankKey key{holding.commit.generation, holding.commit.id, holding.commit.world_size,
                        holding.logical_rank.value};
      records.push_back({home_of(key, communicator_.size()), {key, holding.size_bytes}});
    }
    for (const auto& [peer, record] : exchange(records)) {
      HomedRank& homed = homes_.ranks[record.key];
      offer_holder(homed.holder, peer, owner_of(LogicalRank{record.key.logical_rank}, communicator_));
      homed.size_bytes = record.size_bytes;
    }
  }

  void tell_set_files() {
    std::vector<Addressed<SetFileRecord>> records;
    for (const format::SetDescriptor& set : mine_.set_files) {
      records.push_back({home_of(set, communicator_.size()), {format::encode(set)}});
    }
    std::map<SetKey, std::size_t> index;
    for (const auto& [peer, record] : exchange(records)) {
      const format::SetDescriptor set = format::decode_set(record.bytes, "a set file on the wire");
      const auto [found, is_new] = index.emplace(key_of(set), homes_.sets.size());
      if (is_new) add_set(set);
      HomedSet& homed = homes_.sets[found->second];
      // Two that call themselves the same set and are not: the first one counts, the other is no help.
      if (homed.set.members != set.members || homed.set.scheme != set.scheme) continue;
      auto& holders = set.kind == format::SetFileKind::parity ? homed.parity : homed.descriptor;
      offer_holder(holders[set.position], peer, owner_of(set.members[set.position].logical_rank, communicator_));
    }
  }

  void add_set(const format::SetDescriptor& set) {
    HomedSet homed;
    homed.set = set;
    homed.container.assign(set.members.size(), kNoProcess);
    homed.parity = homed.container;
    homed.descriptor = homed.container;
    homes_.sets.push_back(std::move(homed));
  }

  /// A member may have its container and not its descriptor, so the set's home asks where the containers are.
  void ask_for_containers() {
    std::vector<Addressed<Question>> questions;
    for (std::size_t index = 0; index < homes_.sets.size(); ++index) {
      const format::SetDescriptor& set = homes_.sets[index].set;
      for (std::size_t position = 0; position < set.members.size(); ++position) {
        const RankKey key = rank_key(set, position);
        questions.push_back({home_of(key, communicator_.size()),
                             {key, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(position)}});
      }
    }
    std::vector<Addressed<Answer>> answers;
    for (const auto& [peer, question] : exchange(questions)) {
      answers.push_back({peer, {question.set_index, question.position, homes_.ranks[question.key].holder}});
    }
    for (const auto& [peer, answer] : exchange(answers)) {
      homes_.sets[answer.set_index].container[answer.position] = answer.holder;
    }
  }

  void offer() {
    std::vector<Addressed<Offer>> offers;
    for (std::size_t index = 0; index < homes_.sets.size(); ++index) {
      HomedSet& homed = homes_.sets[index];
      judge(homed);
      for (std::size_t position = 0; position < homed.set.members.size(); ++position) {
        const RankKey key = rank_key(homed.set, position);
        const SetOffer what{communicator_.rank(), static_cast<std::uint32_t>(index), homed.decodable, homed.whole,
                            homed.set.members[position].size_bytes};
        offers.push_back({home_of(key, communicator_.size()), {key, what}});
      }
    }
    for (const auto& [peer, record] : exchange(offers)) homes_.ranks[record.key].offers.push_back(record.offer);
  }

  static void judge(HomedSet& homed) {
    redundancy::Presence present;
    const auto is_there = [](int holder) { return holder != kNoProcess; };
    for (const int holder : homed.container) present.container.push_back(is_there(holder));
    for (const int holder : homed.parity) present.parity.push_back(is_there(holder));
    homed.decodable = redundancy::can_decode(homed.set.scheme, homed.set.parities, present);
    homed.whole = std::ranges::all_of(homed.container, is_there) && std::ranges::all_of(homed.parity, is_there) &&
                  std::ranges::all_of(homed.descriptor, is_there);
  }

  Communicator& communicator_;
  const Holdings& mine_;
  Deadline deadline_;
  Homes homes_;
};

}  // namespace

const SetOffer* HomedRank::rebuilder() const noexcept {
  const auto found = std::ranges::find_if(offers, [](const SetOffer& offer) { return offer.decodable; });
  return found == offers.end() ? nullptr : &*found;
}

bool HomedRank::is_protected() const noexcept {
  return std::ranges::any_of(offers, [](const SetOffer& offer) { return offer.whole; });
}

int owner_of(LogicalRank logical_rank, const Communicator& communicator) noexcept {
  return static_cast<int>(logical_rank.value % static_cast<std::uint32_t>(communicator.size()));
}

Homes tell_homes(Communicator& communicator, const Holdings& mine, Deadline deadline) {
  return Teller(communicator, mine, deadline).run();
}

}  // namespace kedge::recovery
