#include "recovery/homes.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/invariant.hpp"
#include "comm/wire.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::recovery {
namespace {

using comm::Addressed;

// Messages between processes of one job, never stored.
struct ContainerRecord {
  RankKey key;
  std::uint64_t size_bytes = 0;
  std::int64_t domain = 0;
};

struct SetFileRecord {
  format::SetDescriptorBytes bytes{};
};

/// From the home of a set to the homes of its members' logical ranks: which process has this container?
struct Question {
  RankKey key;
  std::uint32_t set_index = 0;
  std::uint32_t position = 0;
};

struct Answer {
  std::uint32_t set_index = 0;
  std::uint32_t position = 0;
  int holder = kNoProcess;
  int domain = kNoProcess;
};

struct Offer {
  RankKey key;
  int home = kNoProcess;
  std::uint32_t index = 0;
  std::uint32_t decodable = 0;  ///< 0 or 1
  std::uint32_t whole = 0;      ///< 0 or 1
  std::uint64_t size_bytes = 0;
};

static_assert(comm::kHasNoPadding<ContainerRecord, Question, Answer, Offer>, "padding would be sent, which nobody set");

/// Identifies a set.
using SetKey = std::tuple<Id128, Id128, std::uint64_t>;

SetKey key_of(const format::SetDescriptor& set) { return {set.commit_id, set.protection_id, set.set_number}; }

/// Ids are random, so any part of them distributes the homes evenly.
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

/// Prefers the owner, which saves a move, then the lowest process.
void offer_holder(int& holder, int candidate, int owner) {
  if (holder == owner) return;
  if (holder == kNoProcess || candidate == owner || candidate < holder) holder = candidate;
}

class LocalFileExchange {
 public:
  LocalFileExchange(const comm::Group& group, const LocalFiles& mine) : group_(group), mine_(mine) {}

  Homes run() {
    send_containers();
    if (group_.any(!mine_.set_files.empty())) {
      send_set_files();
      ask_for_containers();
      offer();
    }
    return std::move(homes_);
  }

 private:
  /// Whether a record can have this key; sender and receiver check it.
  [[nodiscard]] static bool is_possible(const RankKey& key) {
    return key.world_size != 0 && key.logical_rank < key.world_size;
  }
  void check_home(const RankKey& key) const {
    invariant(is_possible(key), "a record is about a rank of its commit");
    invariant(home_of(key, group_.size()) == group_.rank(), "a record about a logical rank comes to its home");
  }
  void check_holder(int holder) const {
    invariant(holder == kNoProcess || (holder >= 0 && holder < group_.size()), "a holder is a process of this job");
  }

  /// Damaged containers are not sent: they count as missing.
  void send_containers() {
    std::vector<Addressed<ContainerRecord>> records;
    for (const LocalContainer& holding : mine_.containers) {
      if (!holding.intact || holding.logical_rank.value >= holding.commit.world_size) continue;
      const RankKey key{holding.commit.generation, holding.commit.id, holding.commit.world_size,
                        holding.logical_rank.value};
      records.push_back({home_of(key, group_.size()), {key, holding.size_bytes, mine_.domain}});
    }
    for (const auto& [peer, record] : group_.exchange(records)) {
      check_home(record.key);
      invariant(record.domain >= 0 && record.domain < group_.size(), "a failure domain is named by a process of it");
      HomedRank& homed = homes_.ranks[record.key];
      offer_holder(homed.holder, peer, owner_of(LogicalRank{record.key.logical_rank}, group_));
      homed.size_bytes = record.size_bytes;
      if (homed.holder == peer) homed.domain = static_cast<int>(record.domain);
    }
  }

  void send_set_files() {
    std::vector<Addressed<SetFileRecord>> records;
    for (const format::SetDescriptor& set : mine_.set_files) {
      records.push_back({home_of(set, group_.size()), {format::encode_set_descriptor(set)}});
    }
    std::map<SetKey, std::size_t> index;
    for (const auto& [peer, record] : group_.exchange(records)) {
      const format::SetDescriptor set = format::decode_set_descriptor(record.bytes, "a set file on the wire");
      invariant(home_of(set, group_.size()) == group_.rank(), "a set file comes to the home of its set");
      const auto [found, is_new] = index.emplace(key_of(set), homes_.sets.size());
      if (is_new) add_set(set);
      HomedSet& homed = homes_.sets[found->second];
      // Of two different sets with the same identity, only the first is used.
      if (homed.set.members != set.members || homed.set.scheme != set.scheme) continue;
      auto& holders = set.kind == format::SetFileKind::parity ? homed.parity : homed.descriptor;
      offer_holder(holders[set.position], peer, owner_of(set.members[set.position].logical_rank, group_));
    }
  }

  void add_set(const format::SetDescriptor& set) {
    HomedSet homed;
    homed.set = set;
    homed.container.assign(set.members.size(), kNoProcess);
    homed.parity = homed.container;
    homed.descriptor = homed.container;
    homed.domain = homed.container;
    homes_.sets.push_back(std::move(homed));
  }

  /// A member may have its container but not its descriptor, so the set's home asks for the containers.
  void ask_for_containers() {
    std::vector<Addressed<Question>> questions;
    for (std::size_t index = 0; index < homes_.sets.size(); ++index) {
      const format::SetDescriptor& set = homes_.sets[index].set;
      for (std::size_t position = 0; position < set.members.size(); ++position) {
        const RankKey key = rank_key(set, position);
        questions.push_back({home_of(key, group_.size()),
                             {key, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(position)}});
      }
    }
    std::vector<Addressed<Answer>> answers;
    for (const auto& [peer, question] : group_.exchange(questions)) {
      check_home(question.key);
      const HomedRank& homed = homes_.ranks[question.key];
      answers.push_back({peer, {question.set_index, question.position, homed.holder, homed.domain}});
    }
    for (const auto& [peer, answer] : group_.exchange(answers)) {
      check_holder(answer.holder);
      check_holder(answer.domain);
      invariant(answer.set_index < homes_.sets.size(), "an answer is about a set of this home");
      HomedSet& homed = homes_.sets[answer.set_index];
      invariant(answer.position < homed.container.size(), "an answer is about a member of its set");
      homed.container[answer.position] = answer.holder;
      homed.domain[answer.position] = answer.domain;
    }
  }

  void offer() {
    std::vector<Addressed<Offer>> candidate_sets;
    for (std::size_t index = 0; index < homes_.sets.size(); ++index) {
      HomedSet& homed = homes_.sets[index];
      decide_set(homed);
      for (std::size_t position = 0; position < homed.set.members.size(); ++position) {
        const RankKey key = rank_key(homed.set, position);
        candidate_sets.push_back({home_of(key, group_.size()),
                                  {key, group_.rank(), static_cast<std::uint32_t>(index), homed.decodable ? 1U : 0U,
                                   homed.whole ? 1U : 0U, homed.set.members[position].size_bytes}});
      }
    }
    for (const auto& [peer, offer] : group_.exchange(candidate_sets)) {
      check_home(offer.key);
      invariant(offer.home == peer && offer.decodable <= 1 && offer.whole <= 1, "a set is offered by its home");
      homes_.ranks[offer.key].candidate_sets.push_back(
          {offer.home, offer.index, offer.decodable != 0, offer.whole != 0, offer.size_bytes});
    }
  }

  void decide_set(HomedSet& homed) const {
    if (stays_as_it_lies(homed.set.world_size, group_)) ignore_separate_parity(homed);
    redundancy::PresentFiles present;
    const auto is_there = [](int holder) { return holder != kNoProcess; };
    for (const int holder : homed.container) present.container.push_back(is_there(holder));
    for (const int holder : homed.parity) present.parity.push_back(is_there(holder));
    homed.decodable = redundancy::can_decode(homed.set.scheme, homed.set.parity_count, present);
    homed.whole = std::ranges::all_of(homed.container, is_there) && std::ranges::all_of(homed.parity, is_there) &&
                  std::ranges::all_of(homed.descriptor, is_there);
    if (stays_as_it_lies(homed.set.world_size, group_)) homed.whole = homed.whole && is_spread(homed);
  }

  /// Whether no failure domain has two members.
  static bool is_spread(const HomedSet& homed) {
    std::vector<int> domains = homed.domain;
    std::ranges::sort(domains);
    return std::ranges::adjacent_find(domains) == domains.end();
  }

  /// A member's files are not moved together, and take part in an exchange only where its container is.
  static void ignore_separate_parity(HomedSet& homed) {
    for (std::size_t i = 0; i < homed.parity.size(); ++i) {
      if (homed.container[i] != kNoProcess && homed.parity[i] != homed.container[i]) homed.parity[i] = kNoProcess;
    }
  }

  const comm::Group& group_;
  const LocalFiles& mine_;
  Homes homes_;
};

}  // namespace

const CandidateSet* HomedRank::find_rebuilding_set() const noexcept {
  const auto found = std::ranges::find_if(candidate_sets, [](const CandidateSet& offer) { return offer.decodable; });
  return found == candidate_sets.end() ? nullptr : &*found;
}

bool HomedRank::is_protected() const noexcept {
  return std::ranges::any_of(candidate_sets, [](const CandidateSet& offer) { return offer.whole; });
}

int owner_of(LogicalRank logical_rank, const comm::Group& group) noexcept {
  return static_cast<int>(logical_rank.value % group.world_size());
}

bool stays_as_it_lies(std::uint32_t world_size, const comm::Group& group) noexcept {
  return world_size != group.world_size();
}

Homes exchange_local_files(const comm::Group& group, const LocalFiles& mine) {
  return LocalFileExchange(group, mine).run();
}

}  // namespace kedge::recovery
