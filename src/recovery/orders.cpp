#include "recovery/orders.hpp"

#include <algorithm>
#include <array>
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

/// From the home of a logical rank to the home of the set that must rebuild its container.
struct RebuildRequest {
  std::uint32_t set_index = 0;
};

struct SetOrderRecord {
  format::SetDescriptorBytes descriptor{};
  std::array<std::uint8_t, format::kSetMembersMax> container{};
  std::array<std::uint8_t, format::kSetMembersMax> parity{};
  std::uint8_t rebuild = 0;
};

static_assert(comm::kHasNoPadding<MoveRecord, FetchRecord, RebuildRequest>, "padding would be sent, which nobody set");
static_assert(alignof(SetOrderRecord) == 1, "the same");

class OrderPlanner {
 public:
  OrderPlanner(const comm::Group& group, const Homes& homes, const Candidate& chosen)
      : group_(group), homes_(homes), chosen_(chosen) {}

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
      const format::SetDescriptor& set = orders.sets.back().set;
      check_owner(set.members[set.position].logical_rank);
    }
    // A process that is in several sets goes through them in the order in which all their members do.
    std::ranges::sort(orders.sets, {}, [](const SetOrder& order) {
      return std::tuple(order.set.protection_id, order.set.set_number, order.set.position);
    });
    return orders;
  }

 private:
  void check_owner(LogicalRank logical_rank) const {
    invariant(logical_rank.value < chosen_.commit.world_size, "an order is about a rank of its commit");
    invariant(owner_of(logical_rank, group_) == group_.rank(), "an order goes to the owner of its files");
  }

  void check(const MoveRecord& record) const {
    const auto is_process = [&](int process) { return process >= 0 && process < group_.size(); };
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
      if (homed.holder != kNoProcess) {
        move(store::FileKind::container, logical_rank, {}, homed.size_bytes, homed.holder);
      } else if (const CandidateSet* offer = homed.find_rebuilding_set()) {
        requests_.push_back({offer->home, {offer->index}});
      } else {
        fetches_.push_back({owner_of(logical_rank, group_), {logical_rank.value}});
      }
    }
  }

  void order_sets() {
    std::set<std::uint32_t> to_rebuild;
    for (const auto& [peer, request] : group_.exchange(requests_)) {
      invariant(request.set_index < homes_.sets.size(), "a request is about a set of this home");
      to_rebuild.insert(request.set_index);
    }
    for (std::uint32_t index = 0; index < homes_.sets.size(); ++index) {
      const HomedSet& homed = homes_.sets[index];
      if (homed.set.commit_id != chosen_.commit.id) continue;
      const bool rebuild = to_rebuild.contains(index);
      if (rebuild || homed.whole) order(homed, rebuild);
    }
  }

  void order(const HomedSet& homed, bool rebuild) {
    SetOrderRecord record;
    format::SetDescriptor set = homed.set;
    set.kind = format::SetFileKind::descriptor;
    set.parity_bytes = 0;
    set.parity_crc = 0;
    record.rebuild = rebuild ? 1 : 0;
    redundancy::SetShape shape{set.scheme, {}, set.parities};
    for (std::size_t i = 0; i < set.members.size(); ++i) {
      record.container[i] = homed.container[i] != kNoProcess ? 1 : 0;
      record.parity[i] = homed.parity[i] != kNoProcess ? 1 : 0;
      shape.sizes.push_back(set.members[i].size_bytes);
    }
    for (std::uint32_t i = 0; i < set.members.size(); ++i) {
      const LogicalRank logical_rank = set.members[i].logical_rank;
      move(store::FileKind::parity, logical_rank, set.protection_id,
           format::kSuperblockBytes + redundancy::parity_bytes(shape, i), homed.parity[i]);
      set.position = i;
      record.descriptor = format::encode(set);
      set_orders_.push_back({owner_of(logical_rank, group_), record});
    }
  }

  static SetOrder read(const SetOrderRecord& record) {
    SetOrder order;
    order.set = format::decode_set(record.descriptor, "a set's order on the wire");
    for (std::size_t i = 0; i < order.set.members.size(); ++i) {
      order.present.container.push_back(record.container[i] != 0);
      order.present.parity.push_back(record.parity[i] != 0);
    }
    invariant(record.rebuild <= 1, "an order to rebuild is given or not");
    order.rebuild = record.rebuild != 0;
    return order;
  }

  const comm::Group& group_;
  const Homes& homes_;
  const Candidate& chosen_;
  std::vector<Addressed<MoveRecord>> moves_;
  std::vector<Addressed<FetchRecord>> fetches_;
  std::vector<Addressed<RebuildRequest>> requests_;
  std::vector<Addressed<SetOrderRecord>> set_orders_;
};

}  // namespace

Orders plan_orders(const comm::Group& group, const Homes& homes, const Candidate& chosen) {
  return OrderPlanner(group, homes, chosen).run();
}

}  // namespace kedge::recovery
