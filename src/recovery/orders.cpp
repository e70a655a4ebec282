#include "recovery/orders.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/invariant.hpp"
#include "comm/wire.hpp"

namespace kedge::recovery {
namespace {

using comm::Addressed;

// Messages between processes of one job, never stored.
struct MoveRecord {
  std::uint32_t kind = 0;
  std::uint32_t logical_rank = 0;
  Id128 commit_id;
  Id128 protection_id;
  std::uint64_t generation = 0;
  std::uint64_t size_bytes = 0;
  int from = 0;
  int to = 0;
};

struct FetchRecord {
  std::uint32_t logical_rank = 0;
};

/// To the process that reads a container for all others.
struct HeldRecord {
  std::uint32_t logical_rank = 0;
  std::uint32_t in_store = 0;  ///< 0 or 1
};

/// From the home of a logical rank to the home of the set that must rebuild its container.
struct RebuildRequest {
  std::uint32_t set_index = 0;
  std::uint32_t logical_rank = 0;
};

/// From the home of a set to a process of the node that is to get a rebuilt file: which process makes files of this
/// rank there? And the answer.
struct KeeperQuestion {
  std::uint32_t set_index = 0;
  std::uint32_t position = 0;
  std::uint32_t logical_rank = 0;
};
struct KeeperAnswer {
  std::uint32_t set_index = 0;
  std::uint32_t position = 0;
  int process = 0;
};

struct SetOrderRecord {
  format::SetDescriptorBytes descriptor{};
  std::array<std::uint8_t, format::kSetMembersMax> container{};
  std::array<std::uint8_t, format::kSetMembersMax> parity{};
  std::array<std::array<std::byte, sizeof(std::int32_t)>, format::kSetMembersMax> process{};
  std::uint8_t rebuild = 0;
  std::uint8_t is_requested = 0;  ///< the rebuilt container, by the home of its logical rank
};

static_assert(comm::kHasNoPadding<MoveRecord, FetchRecord, HeldRecord, RebuildRequest, KeeperQuestion, KeeperAnswer>,
              "padding would be sent, which nobody set");
static_assert(alignof(SetOrderRecord) == 1, "padding would be sent, which nobody set");

class OrderPlanner {
 public:
  OrderPlanner(const comm::Group& group, const Homes& homes, const Candidate& chosen,
               const std::function<int(LogicalRank)>& keeper_here)
      : group_(group),
        homes_(homes),
        chosen_(chosen),
        keeper_here_(keeper_here),
        as_it_lies_(stays_as_it_lies(chosen.commit.world_size, group)) {}

  Orders run() {
    order_containers();
    order_sets();
    Orders orders;
    for (const auto& [peer, record] : group_.exchange(moves_)) {
      check(record);
      MoveOrder move;
      move.kind = static_cast<store::FileKind>(record.kind);
      move.logical_rank = LogicalRank{record.logical_rank};
      move.key = {record.commit_id, record.protection_id};
      move.generation = record.generation;
      move.size_bytes = record.size_bytes;
      move.from = record.from;
      move.to = record.to;
      orders.moves.push_back(move);
    }
    // Messages between two processes keep their order, so both must process their common moves in the same order.
    std::ranges::sort(orders.moves, {}, [](const MoveOrder& move) {
      return std::tuple(move.logical_rank.value, move.kind, move.key.commit_id, move.key.protection_id);
    });
    for (const auto& [peer, record] : group_.exchange(fetches_)) {
      check_owner(LogicalRank{record.logical_rank});
      orders.fetches.push_back({LogicalRank{record.logical_rank}, {chosen_.commit.id, {}}, chosen_.commit.generation});
    }
    for (const auto& [peer, record] : group_.exchange(set_orders_)) {
      orders.sets.push_back(read(record));
      const SetOrder& order = orders.sets.back();
      invariant(order.processes[order.set.position] == group_.rank(), "an order goes to the process of its member");
      if (record.is_requested != 0) {
        orders.held.push_back({order.set.members[order.set.position].logical_rank, true});
      }
    }
    if (as_it_lies_) take_held(orders);
    // A process that is in several sets goes through them in the order in which all their members do.
    std::ranges::sort(orders.sets, {}, [](const SetOrder& order) {
      return std::tuple(order.set.protection_id, order.set.set_number, order.set.position);
    });
    return orders;
  }

 private:
  void take_held(Orders& orders) const {
    for (const auto& [peer, record] : group_.exchange(held_)) {
      invariant(record.logical_rank < chosen_.commit.world_size && record.in_store <= 1,
                "a container belongs to a rank of its commit");
      orders.held.push_back({LogicalRank{record.logical_rank}, record.in_store != 0});
    }
    std::ranges::sort(orders.held, {}, [](const HeldRank& held) { return held.logical_rank.value; });
  }

  void check_owner(LogicalRank logical_rank) const {
    invariant(logical_rank.value < chosen_.commit.world_size, "an order is about a rank of its commit");
    invariant(owner_of(logical_rank, group_) == group_.rank(), "an order goes to the owner of its files");
  }

  [[nodiscard]] bool is_process(int process) const { return process >= 0 && process < group_.size(); }

  void check(const MoveRecord& record) const {
    invariant(is_process(record.from) && is_process(record.to) && record.from != record.to,
              "a file moves between two processes of this job");
    invariant(record.from == group_.rank() || record.to == group_.rank(), "a move is told to its two sides");
    invariant(record.logical_rank < chosen_.commit.world_size && record.commit_id == chosen_.commit.id,
              "a moved file belongs to the chosen commit");
    invariant(record.kind == static_cast<std::uint32_t>(store::FileKind::container) ||
                  record.kind == static_cast<std::uint32_t>(store::FileKind::parity),
              "containers and parity are moved, nothing else");
  }

  void move(store::FileKind kind, LogicalRank logical_rank, const Id128& protection_id, std::uint64_t size_bytes,
            int holder) {
    const int owner = owner_of(logical_rank, group_);
    if (holder == owner || holder == kNoProcess) return;
    const MoveRecord record{static_cast<std::uint32_t>(kind),
                            logical_rank.value,
                            chosen_.commit.id,
                            protection_id,
                            chosen_.commit.generation,
                            size_bytes,
                            holder,
                            owner};
    moves_.push_back({holder, record});
    moves_.push_back({owner, record});
  }

  void order_containers() {
    const auto processes = static_cast<std::uint64_t>(group_.size());
    const HomedRank none_held;
    for (auto rank = static_cast<std::uint64_t>(group_.rank()); rank < chosen_.commit.world_size; rank += processes) {
      const LogicalRank logical_rank{static_cast<std::uint32_t>(rank)};
      const auto found = homes_.ranks.find(
          {chosen_.commit.generation, chosen_.commit.id, chosen_.commit.world_size, logical_rank.value});
      const HomedRank& homed = found == homes_.ranks.end() ? none_held : found->second;
      if (homed.holder != kNoProcess && as_it_lies_) {
        held_.push_back({homed.holder, {logical_rank.value, 1}});
      } else if (homed.holder != kNoProcess) {
        move(store::FileKind::container, logical_rank, {}, homed.size_bytes, homed.holder);
      } else if (const CandidateSet* offer = homed.find_rebuilding_set()) {
        requests_.push_back({offer->home, {offer->index, logical_rank.value}});
      } else if (as_it_lies_) {
        held_.push_back({owner_of(logical_rank, group_), {logical_rank.value, 0}});
      } else {
        fetches_.push_back({owner_of(logical_rank, group_), {logical_rank.value}});
      }
    }
  }

  void order_sets() {
    for (const auto& [peer, request] : group_.exchange(requests_)) {
      invariant(request.set_index < homes_.sets.size(), "a request is about a set of this home");
      requested_[request.set_index].insert(request.logical_rank);
    }
    if (as_it_lies_) ask_for_keepers();
    for (std::uint32_t index = 0; index < homes_.sets.size(); ++index) {
      const HomedSet& homed = homes_.sets[index];
      if (homed.set.commit_id != chosen_.commit.id) continue;
      const bool rebuild = requested_.contains(index);
      if (rebuild || (homed.whole && !as_it_lies_)) order(index, rebuild);
    }
  }

  /// The process that has a member's files, or is to get them; kNoProcess if that depends on a node.
  [[nodiscard]] int process_of(const HomedSet& homed, std::size_t position) const {
    if (!as_it_lies_) return owner_of(homed.set.members[position].logical_rank, group_);
    return homed.container[position] != kNoProcess ? homed.container[position] : homed.parity[position];
  }

  /// A lost member goes to the node of the process whose rank is that of the member modulo the number of processes.
  void ask_for_keepers() {
    std::vector<Addressed<KeeperQuestion>> questions;
    for (const auto& [index, ranks] : requested_) {
      const HomedSet& homed = homes_.sets[index];
      for (std::uint32_t i = 0; i < homed.set.members.size(); ++i) {
        if (process_of(homed, i) != kNoProcess) continue;
        const LogicalRank logical_rank = homed.set.members[i].logical_rank;
        questions.push_back({owner_of(logical_rank, group_), {index, i, logical_rank.value}});
      }
    }
    std::vector<Addressed<KeeperAnswer>> answers;
    for (const auto& [peer, question] : group_.exchange(questions)) {
      const int process = keeper_here_(LogicalRank{question.logical_rank});
      answers.push_back({peer, {question.set_index, question.position, process}});
    }
    for (const auto& [peer, answer] : group_.exchange(answers)) {
      invariant(requested_.contains(answer.set_index) && is_process(answer.process),
                "an answer is about a set of this home, and names a process");
      keepers_[{answer.set_index, answer.position}] = answer.process;
    }
  }

  void order(std::uint32_t index, bool rebuild) {
    const HomedSet& homed = homes_.sets[index];
    SetOrderRecord record;
    format::SetDescriptor set = homed.set;
    set.kind = format::SetFileKind::descriptor;
    set.parity_bytes = 0;
    set.parity_crc = 0;
    record.rebuild = rebuild ? 1 : 0;
    redundancy::SetShape shape{set.scheme, {}, set.parity_count};
    for (std::size_t i = 0; i < set.members.size(); ++i) {
      record.container[i] = homed.container[i] != kNoProcess ? 1 : 0;
      record.parity[i] = homed.parity[i] != kNoProcess ? 1 : 0;
      shape.sizes.push_back(set.members[i].size_bytes);
      std::int32_t process = process_of(homed, i);
      if (process == kNoProcess) {
        const auto keeper = keepers_.find({index, static_cast<std::uint32_t>(i)});
        invariant(keeper != keepers_.end(), "every lost member of a set that is rebuilt gets a keeper");
        process = keeper->second;
      }
      std::memcpy(record.process[i].data(), &process, sizeof process);
    }
    for (std::uint32_t i = 0; i < set.members.size(); ++i) {
      const LogicalRank logical_rank = set.members[i].logical_rank;
      if (!as_it_lies_) {
        move(store::FileKind::parity, logical_rank, set.protection_id,
             format::kSuperblockBytes + redundancy::parity_bytes(shape, i), homed.parity[i]);
      } else {
        record.is_requested = requested_.at(index).contains(logical_rank.value) ? 1 : 0;
      }
      set.position = i;
      record.descriptor = format::encode_set_descriptor(set);
      set_orders_.push_back({process_in(record, i), record});
    }
  }

  static std::int32_t process_in(const SetOrderRecord& record, std::size_t position) {
    std::int32_t process = 0;
    std::memcpy(&process, record.process[position].data(), sizeof process);
    return process;
  }

  static SetOrder read(const SetOrderRecord& record) {
    SetOrder order;
    order.set = format::decode_set_descriptor(record.descriptor, "a set's order on the wire");
    for (std::size_t i = 0; i < order.set.members.size(); ++i) {
      order.present.container.push_back(record.container[i] != 0);
      order.present.parity.push_back(record.parity[i] != 0);
      order.processes.push_back(process_in(record, i));
      invariant(order.processes.back() >= 0, "a member is with a process of this job");
    }
    invariant(record.rebuild <= 1, "an order to rebuild is given or not");
    order.rebuild = record.rebuild != 0;
    return order;
  }

  const comm::Group& group_;
  const Homes& homes_;
  const Candidate& chosen_;
  const std::function<int(LogicalRank)>& keeper_here_;
  bool as_it_lies_;
  std::map<std::uint32_t, std::set<std::uint32_t>> requested_;      ///< logical ranks, by set
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> keepers_;  ///< of lost members, by set and position
  std::vector<Addressed<MoveRecord>> moves_;
  std::vector<Addressed<FetchRecord>> fetches_;
  std::vector<Addressed<HeldRecord>> held_;
  std::vector<Addressed<RebuildRequest>> requests_;
  std::vector<Addressed<SetOrderRecord>> set_orders_;
};

}  // namespace

Orders plan_orders(const comm::Group& group, const Homes& homes, const Candidate& chosen,
                   const std::function<int(LogicalRank)>& keeper_here) {
  return OrderPlanner(group, homes, chosen, keeper_here).run();
}

}  // namespace kedge::recovery
