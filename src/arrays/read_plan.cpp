#include "arrays/read_plan.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "arrays/checked_messages.hpp"
#include "arrays/choose_readers.hpp"
#include "arrays/directory.hpp"
#include "arrays/plan_records.hpp"
#include "arrays/tiles.hpp"
#include "base/attempt.hpp"

namespace kedge::arrays {
namespace {

/// Less than this in a round is not worth a message.
constexpr std::uint64_t kLeastGrantBytes = 4096;

std::optional<LookUp> look_up_of(const Offer& offer) {
  if (std::holds_alternative<Shard>(offer.placement)) return LookUp::shard;
  if (std::holds_alternative<Replicated>(offer.placement)) return LookUp::replicated;
  return std::nullopt;
}

BoxInArray within(const Box& box, const Box& array) {
  BoxInArray place{shape_of(array), {}};
  for (std::size_t d = 0; d < box.dimensions; ++d) place.at[d] = box.begin[d] - array.begin[d];
  return place;
}

/// Where a part of a want goes in memory.
BoxInArray in_memory(const Want& want, const Box& part) {
  BoxInArray place = within(part, box_of(want));
  if (!want.inside) return place;
  place.extents = want.inside->extents;
  for (std::size_t d = 0; d < part.dimensions; ++d) place.at[d] += want.inside->at[d];
  return place;
}

/// What goes to each home, collected under keys.
template <class Item>
class ForHomes {
 public:
  void add(int home, HomedKey key, ArrayType type, Item item) {
    auto& homed = by_home_[{home, key}];
    if (homed.empty() || !(homed.back().type == type)) homed.push_back({std::move(key), std::move(type), {}});
    homed.back().items.push_back(std::move(item));
  }
  void pack(std::map<int, comm::Packer>& packed) const {
    for (const auto& [where, all] : by_home_) {
      for (const Homed<Item>& homed : all) put(packed[where.first], homed);
    }
  }

 private:
  std::map<std::pair<int, HomedKey>, std::vector<Homed<Item>>> by_home_;
};

std::vector<Communicator::Message> messages_of(std::map<int, comm::Packer>& packed) {
  std::vector<Communicator::Message> messages;
  for (auto& [peer, packer] : packed) messages.push_back({peer, packer.take()});
  return messages;
}

/// The steps of one plan. What a step fails with is kept until all ranks vote: they make the same exchanges meanwhile.
class Planner {
 public:
  Planner(const comm::Group& group, const PlanInput& input, const WantedNames& names, const Batch& batch)
      : group_(group), input_(input), names_(names), batch_(batch) {}

  ReadPlan plan() {
    Messages messages;
    step([&] {
      check_wants();
      messages = to_homes();
    });
    comm::throw_if(group_.vote(failure_));  // or homes would take what did not come for holes
    Messages arrived = exchange(std::move(messages));
    step([&] { messages = to_stewards(arrived); });
    settle_refusals();
    arrived = exchange(std::move(messages));
    step([&] { messages = to_readers_and_receivers(arrived); });
    arrived = exchange(std::move(messages));
    step([&] {
      take_orders(arrived);
      messages = to_readers();
    });
    arrived = exchange(std::move(messages));
    step([&] { take_grants(arrived); });
    comm::throw_if(group_.vote(failure_));
    return std::move(plan_);
  }

 private:
  using Messages = std::vector<Communicator::Message>;

  template <class Step>
  void step(Step&& run) {
    if (!failure_) failure_ = attempt(std::forward<Step>(run));
  }
  /// Takes the messages away; what arrives has been checked, and has no checksums left.
  Messages exchange(Messages&& messages) {
    for (Communicator::Message& message : messages) append_checksum(message.bytes);
    Messages arrived = group_.exchange(std::exchange(messages, {}));
    step([&] {
      for (Communicator::Message& message : arrived) message.bytes.resize(checked_bytes(message).size());
    });
    return arrived;
  }

  void check_wants() const {
    for (const Want& want : input_.wants) comm::throw_if(check(want));
  }

  Messages to_homes() const {
    ForHomes<Row> rows;
    ForHomes<Request> requests;
    add_shards(rows);
    add_regions(rows);
    for (std::uint32_t i = 0; i < input_.wants.size(); ++i) {
      if (batch_.has(input_.wants[i].name)) add_request(requests, i);
    }
    std::map<int, comm::Packer> packed;
    rows.pack(packed);
    requests.pack(packed);
    return messages_of(packed);
  }

  [[nodiscard]] bool is_wanted(const std::string& name, LookUp look_up) const {
    return batch_.has(name) && may_have(names_.of(look_up), name);
  }
  [[nodiscard]] int home(const std::string& name, std::uint64_t tile) const {
    return home_of(name, tile, group_.world_size());
  }
  [[nodiscard]] Tiles tiles_of(const Shape& shape) const { return {shape, input_.logical_ranks, group_.world_size()}; }
  [[nodiscard]] std::uint64_t tile_of(std::uint32_t logical_rank) const {
    return tiles_of(Shape{input_.logical_ranks}).of(box_at(Shape{logical_rank}, Shape{1})).first;
  }

  void add_row(ForHomes<Row>& rows, LookUp look_up, std::uint64_t tile, std::uint32_t number) const {
    const Offer& offer = input_.offers[number];
    rows.add(home(offer.name, tile), {look_up, tile, offer.name}, type_of(offer),
             {0, number, offer.logical_rank, offer.is_in_store, box_of(offer)});
  }

  void add_shards(ForHomes<Row>& rows) const {
    for (std::uint32_t i = 0; i < input_.offers.size(); ++i) {
      const Offer& offer = input_.offers[i];
      if (look_up_of(offer) != LookUp::shard || !is_wanted(offer.name, LookUp::shard)) continue;
      const Tiles::Range tiles = tiles_of(type_of(offer).shape).of(box_of(offer));
      for (std::uint64_t tile = tiles.first; tile <= tiles.last; ++tile) add_row(rows, LookUp::shard, tile, i);
    }
  }

  /// Of what is replicated one is enough, best one in a store; and two show that a name is not one rank's only.
  void add_regions(ForHomes<Row>& rows) const {
    std::map<std::string, std::uint32_t> replicas;
    std::map<std::string, std::uint32_t> owned;
    for (std::uint32_t i = 0; i < input_.offers.size(); ++i) {
      const Offer& offer = input_.offers[i];
      const auto look_up = look_up_of(offer);
      if (look_up == LookUp::replicated && is_wanted(offer.name, LookUp::replicated)) {
        const auto [best, is_first] = replicas.emplace(offer.name, i);
        if (!is_first && offer.is_in_store && !input_.offers[best->second].is_in_store) best->second = i;
      }
      if (look_up) continue;
      if (is_wanted(offer.name, LookUp::of_rank)) add_row(rows, LookUp::of_rank, tile_of(offer.logical_rank), i);
      if (!is_wanted(offer.name, LookUp::only_one) || ++owned[offer.name] > 2) continue;
      add_row(rows, LookUp::only_one, 0, i);
    }
    for (const auto& [name, number] : replicas) add_row(rows, LookUp::replicated, 0, number);
  }

  void add_request(ForHomes<Request>& requests, std::uint32_t number) const {
    const Want& want = input_.wants[number];
    const LookUp look_up = look_up_of(want);
    Request request{0, number, 0, box_of(want)};
    Tiles::Range tiles;
    if (look_up == LookUp::shard) tiles = tiles_of(type_of(want).shape).of(request.box);
    if (look_up == LookUp::of_rank) {
      request.logical_rank = std::get<LogicalRank>(want.from).value;
      tiles.first = tiles.last = tile_of(request.logical_rank);
    }
    for (std::uint64_t tile = tiles.first; tile <= tiles.last; ++tile) {
      requests.add(home(want.name, tile), {look_up, tile, want.name}, type_of(want), request);
    }
  }

  Messages to_stewards(const Messages& arrived) {
    Directory directory(input_.logical_ranks, group_.world_size());
    for (const auto& message : arrived) {
      for (comm::Unpacker unpacker(message.bytes); !unpacker.empty();) take_homed(unpacker, message.peer, directory);
    }
    Directory::Matched matched = directory.match();
    refusal_ = std::move(matched.refusal);
    if (refusal_) throw Error(refusal_->failure);
    std::map<int, comm::Packer> packed;
    for (const Match& match : matched.matches) put(packed[match.steward], match);
    return messages_of(packed);
  }

  /// If a home knows nothing of a name, others may know that it was saved otherwise.
  void settle_refusals() {
    const auto failure = group_.vote(failure_);
    if (!failure) return;
    std::optional<std::string> mine;
    if (failure->rank == group_.rank() && refusal_ && refusal_->unknown) {
      comm::Packer packer;
      put(packer, *refusal_->unknown);
      const auto bytes = packer.take();
      mine.emplace(bytes.size(), '\0');
      std::memcpy(mine->data(), bytes.data(), bytes.size());
    }
    const std::string text = group_.text_of_lowest_rank(mine);
    if (text.empty()) throw Error(*failure);
    comm::Unpacker unpacker(std::as_bytes(std::span(text)));
    const UnknownName asked = get_unknown_name(unpacker);
    const std::string saved = group_.text_of_lowest_rank(saved_differently(asked, input_.offers));
    const bool saved_so = group_.any(saved_the_same(asked, input_.offers));
    if (!saved.empty()) throw Error(saved_otherwise(asked, saved));
    throw Error(saved_so ? *failure : saved_by_no_rank(asked.name));
  }

  /// What one process is told.
  struct Told {
    std::uint64_t orders = 0;
    comm::Packer packed_orders;
    comm::Packer packed_parts;
  };

  Messages to_readers_and_receivers(const Messages& arrived) {
    std::map<std::uint32_t, std::vector<Match>> by_offer;
    for (const auto& message : arrived) {
      for (comm::Unpacker unpacker(message.bytes); !unpacker.empty();) {
        Match match = get_match(unpacker, group_.rank());
        by_offer[match.offer].push_back(match);
      }
    }
    std::map<int, Told> told;
    ReaderChoice choice(static_cast<std::uint64_t>(group_.rank()));
    std::uint32_t next_number = 0;
    for (const auto& [offer, matches] : by_offer) tell(told, offer, matches, next_number, choice);
    Messages messages;
    for (auto& [peer, what] : told) {
      comm::Packer packer;
      packer.put(what.orders);
      auto bytes = packer.take();
      for (auto more : {what.packed_orders.take(), what.packed_parts.take()}) {
        bytes.insert(bytes.end(), more.begin(), more.end());
      }
      messages.push_back({peer, std::move(bytes)});
    }
    return messages;
  }

  void tell(std::map<int, Told>& told, std::uint32_t number, const std::vector<Match>& matches,
            std::uint32_t& next_number, ReaderChoice& choice) const {
    const Offer& offer = input_.offers[number];
    OrderRecord order{
        offer.name, offer.logical_rank, number, offer.is_in_store, size_bytes(offer.dtype), box_of(offer), {}, {}};
    std::vector<WantedPart> parts;
    for (const Match& match : matches) {
      const BoxInArray place = within(match.box, order.stored);
      parts.push_back({match.process, Pattern(shape_of(match.box), order.element_bytes, place, place)});
    }
    const std::uint64_t size = volume(order.stored) * order.element_bytes;
    const BlockReaders readers = choose_readers(size, parts, group_.rank(), offer.is_in_store, choice);
    std::map<int, OrderRecord> orders;
    for (std::size_t i = 0; i < matches.size(); ++i) {
      const Match& match = matches[i];
      const std::uint32_t part = next_number++;
      put(told[match.process].packed_parts,
          PartRecord{part, match.want, order.stored, match.box, readers.readers_of_part[i]});
      for (const int reader : readers.readers_of_part[i]) {
        orders.try_emplace(reader, order).first->second.parts.push_back({match.process, part, match.box});
      }
    }
    for (const auto& [block, reader] : readers.blocks) {
      orders.at(reader).blocks.push_back(block);
    }
    for (const auto& [reader, record] : orders) {
      ++told[reader].orders;
      put(told[reader].packed_orders, record);
    }
  }

  void take_orders(const Messages& arrived) {
    for (const auto& message : arrived) {
      comm::Unpacker unpacker(message.bytes);
      for (auto left = unpacker.get<std::uint64_t>(); left > 0; --left) take_order(get_order(unpacker), message.peer);
      while (!unpacker.empty()) take_part(get_part(unpacker), message.peer);
    }
  }

  void take_order(OrderRecord record, int steward) {
    ReadOrder order{std::move(record.name),
                    record.logical_rank,
                    record.offer,
                    record.is_in_store,
                    volume(record.stored) * record.element_bytes,
                    std::move(record.blocks),
                    {}};
    for (const OrderRecord::Part& part : record.parts) {
      const BoxInArray place = within(part.box, record.stored);
      order.parts.push_back(
          {part.process, steward, part.number, Pattern(shape_of(part.box), record.element_bytes, place, place)});
    }
    plan_.orders.push_back(std::move(order));
  }

  void take_part(const PartRecord& record, int steward) {
    const Want& want = input_.wants[record.want];
    const Pattern pattern(shape_of(record.box), size_bytes(want.dtype), within(record.box, record.stored),
                          in_memory(want, record.box));
    plan_.incoming.emplace(std::pair(steward, record.number), IncomingPart{record.want, pattern, 0});
    readers_.insert(record.readers.begin(), record.readers.end());
  }

  Messages to_readers() {
    readers_.erase(group_.rank());
    const std::vector<int> readers(readers_.begin(), readers_.end());
    std::map<int, comm::Packer> packed;
    for (const auto& [reader, grant] : grants_of(readers, input_.buffer_bytes)) packed[reader].put(grant);
    return messages_of(packed);
  }

  void take_grants(const Messages& arrived) {
    for (const auto& message : arrived) {
      plan_.grants.emplace(message.peer, comm::Unpacker(message.bytes).get<Grant>());
    }
  }

  const comm::Group& group_;
  const PlanInput& input_;
  const WantedNames& names_;
  const Batch& batch_;
  std::optional<Failure> failure_;
  std::optional<Refusal> refusal_;
  std::set<int> readers_;  ///< from whom this process gets bytes
  ReadPlan plan_;
};

}  // namespace

ReadPlan make_read_plan(const comm::Group& group, const PlanInput& input, const WantedNames& names,
                        const Batch& batch) {
  return Planner(group, input, names, batch).plan();
}

std::map<int, Grant> grants_of(std::span<const int> readers, std::uint64_t buffer_bytes) {
  std::map<int, Grant> grants;
  if (readers.empty()) return grants;
  const std::uint64_t half = std::max(buffer_bytes / 2, kLeastGrantBytes);
  const std::uint64_t at_once = std::min<std::uint64_t>(readers.size(), half / kLeastGrantBytes);
  const std::uint64_t turns = (readers.size() - 1) / at_once + 1;
  const std::uint64_t in_a_turn = (readers.size() - 1) / turns + 1;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    grants[readers[i]] = {half / in_a_turn, static_cast<std::uint32_t>(turns), static_cast<std::uint32_t>(i % turns)};
  }
  return grants;
}

}  // namespace kedge::arrays
