#include "arrays/load_all.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "arrays/checked_messages.hpp"
#include "arrays/rounds.hpp"
#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/wire.hpp"
#include "format/on_disk.hpp"
#include "format/region_spec.hpp"

namespace kedge::arrays {
namespace {

using Messages = std::vector<Communicator::Message>;

static_assert(comm::Plain<ChunkHead>);

/// Messages to each receiver, each grown to its size at once.
class Outbox {
 public:
  void make_room(int receiver, std::uint64_t bytes) { room_[receiver] += sizeof(ChunkHead) + bytes; }
  /// A place for the packed bytes behind their head.
  std::span<std::byte> append(int receiver, const ChunkHead& head) {
    std::vector<std::byte>& message = messages_[receiver];
    if (message.empty()) message.reserve(room_.at(receiver) + kMessageTailBytes);
    const std::size_t at = message.size();
    message.resize(at + sizeof head + head.size_bytes);
    std::memcpy(message.data() + at, &head, sizeof head);
    return std::span(message).subspan(at + sizeof head);
  }
  [[nodiscard]] Messages take() {
    Messages messages;
    for (auto& [receiver, bytes] : messages_) {
      append_checksum(bytes);
      messages.push_back({receiver, std::move(bytes)});
    }
    return messages;
  }

 private:
  std::map<int, std::uint64_t> room_;
  std::map<int, std::vector<std::byte>> messages_;
};

std::uint64_t size_of(const Messages& messages) {
  std::uint64_t size = 0;
  for (const auto& message : messages) size += message.bytes.size();
  return size;
}

/// The rounds of one plan.
class Rounds {
 public:
  Rounds(const comm::Group& group, const LoadInput& input, ReadPlan plan, LoadCounts& counts)
      : group_(group),
        input_(input),
        plan_(std::move(plan)),
        sends_(plan_.orders, plan_.grants, limits_of(input.buffer_bytes), group.rank()),
        counts_(counts) {}

  void run() {
    for (bool all_done = false; !all_done;) {
      Messages messages;
      failure_ = attempt([&] { messages = read_and_pack(); });
      if (read_failure_) failure_ = read_failure_;
      const std::uint64_t sent = size_of(messages);
      Messages arrived = group_.exchange(std::move(messages));
      counts_.buffer_bytes_max = std::max(counts_.buffer_bytes_max, kept_bytes_ + sent + size_of(arrived));
      if (!failure_) failure_ = attempt([&] { unpack(arrived); });
      const comm::VoteResult result = group_.vote_with_request(failure_, sends_.has_more());
      comm::throw_if(result.failure);
      all_done = !result.is_requested;
      ++counts_.rounds;
    }
    group_.run_on_all_ranks([&] { require_complete(); });
  }

 private:
  using BlockTurn = SendRounds::BlockTurn;

  Messages read_and_pack() {
    const std::vector<BlockTurn> turns = sends_.next_round();
    Outbox outbox;
    for (const BlockTurn& turn : turns) {
      for (const SendRounds::Chunk& chunk : turn.chunks) {
        const int receiver = part_of(turn, chunk).process;
        if (receiver != group_.rank()) outbox.make_room(receiver, chunk.range.size_bytes());
      }
    }
    for (const BlockTurn& turn : turns) {
      const std::pair which(turn.order, turn.block);
      if (read_straight(turn, outbox)) continue;
      if (turn.is_first) keep(turn);
      for (const SendRounds::Chunk& chunk : turn.chunks) pass_on(turn, chunk, kept_.at(which), outbox);
      if (turn.is_last) drop(which);
    }
    return outbox.take();
  }

  [[nodiscard]] const ReadOrder::Part& part_of(const BlockTurn& turn, const SendRounds::Chunk& chunk) const {
    return plan_.orders[turn.order].parts[chunk.part];
  }
  [[nodiscard]] static std::uint64_t offset_of(const ReadOrder& order, std::size_t block) {
    return order.blocks[block] * format::kBlockBytes;
  }

  [[nodiscard]] BlockToRead block_of(const BlockTurn& turn) const {
    const ReadOrder& order = plan_.orders[turn.order];
    const std::uint64_t offset = offset_of(order, turn.block);
    return {order, offset, std::min(format::kBlockBytes, order.size_bytes - offset)};
  }

  /// Of a block that cannot be read those that wait for it get whatever is there: the vote at the round's end fails.
  void read(const BlockTurn& turn, std::span<std::byte> to) {
    const BlockToRead block = block_of(turn);
    const auto failure = attempt([&] { input_.read(block, to); });
    if (failure && !read_failure_) read_failure_ = failure;
    ++counts_.blocks_read;
    counts_.bytes_read += block.size_bytes;
  }

  /// Reads a block that one process wants whole, and in one piece, to where it goes: into the application's memory, or
  /// into the message. False if it is not such a block.
  bool read_straight(const BlockTurn& turn, Outbox& outbox) {
    if (!turn.is_first || !turn.is_last || turn.chunks.size() != 1) return false;
    const SendRounds::Chunk& chunk = turn.chunks.front();
    if (chunk.range.size_bytes() != block_of(turn).size_bytes) return false;
    const ReadOrder::Part& part = part_of(turn, chunk);
    if (part.process != group_.rank()) {  // packed as it is stored: nothing lies between
      read(turn, message_for(part, chunk.range, outbox));
      return true;
    }
    IncomingPart& incoming = plan_.incoming.at({part.steward, part.number});
    std::byte* const array = input_.memory(incoming.want);
    const auto at = incoming.pattern.memory_of_run(chunk.range);
    if (array == nullptr || !at) return false;
    read(turn, {array + *at, chunk.range.size_bytes()});
    incoming.received_bytes += chunk.range.size_bytes();
    return true;
  }

  void keep(const BlockTurn& turn) {
    std::vector<std::byte> block = std::exchange(spare_, {});
    block.resize(block_of(turn).size_bytes);
    read(turn, block);
    kept_bytes_ += block.size();
    counts_.buffer_bytes_max = std::max(counts_.buffer_bytes_max, kept_bytes_);
    kept_[{turn.order, turn.block}] = std::move(block);
  }

  /// Room for these bytes of a part.
  std::span<std::byte> message_for(const ReadOrder::Part& part, const PackedRange& range, Outbox& outbox) {
    counts_.bytes_sent += range.size_bytes();
    return outbox.append(part.process, {part.steward, part.number, range.first, range.size_bytes()});
  }

  void pass_on(const BlockTurn& turn, const SendRounds::Chunk& chunk, std::span<const std::byte> bytes,
               Outbox& outbox) {
    const ReadOrder::Part& part = part_of(turn, chunk);
    const std::uint64_t offset = offset_of(plan_.orders[turn.order], turn.block);
    if (part.process == group_.rank()) {
      IncomingPart& incoming = plan_.incoming.at({part.steward, part.number});
      deliver(incoming, chunk.range, bytes, offset);
      return;
    }
    gather(part.pattern, chunk.range, bytes, offset, message_for(part, chunk.range, outbox));
  }

  void deliver(IncomingPart& incoming, const PackedRange& range, std::span<const std::byte> bytes,
               std::optional<std::uint64_t> stored_offset) {
    incoming.received_bytes += range.size_bytes();
    input_.deliver({incoming.want, incoming.pattern, range, bytes, stored_offset});
  }

  void unpack(const Messages& arrived) {
    for (const auto& message : arrived) {
      std::span<const std::byte> bytes = checked_bytes(message);
      while (!bytes.empty()) bytes = unpack_chunk(bytes, message.peer);
    }
  }

  /// What follows.
  std::span<const std::byte> unpack_chunk(std::span<const std::byte> bytes, int from) {
    ChunkHead head;
    if (bytes.size() < sizeof head) refuse_message(from);
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    const auto incoming = plan_.incoming.find({head.steward, head.number});
    if (incoming == plan_.incoming.end() || head.size_bytes > bytes.size()) refuse_message(from);
    const std::uint64_t size = incoming->second.pattern.size_bytes();
    if (head.first > size || head.size_bytes > size - head.first) refuse_message(from);
    deliver(incoming->second, {head.first, head.first + head.size_bytes}, bytes.first(head.size_bytes), std::nullopt);
    return bytes.subspan(head.size_bytes);
  }

  void require_complete() const {
    for (const auto& [who, part] : plan_.incoming) {
      if (part.received_bytes == part.pattern.size_bytes()) continue;
      throw Error(ErrorCode::io,
                  compose("region '{}' arrived in part: {} of {} bytes of what rank {} was asked for; load again",
                          format::printable_name(input_.wants[part.want].name), part.received_bytes,
                          part.pattern.size_bytes(), who.first));
    }
  }

  void drop(const std::pair<std::size_t, std::size_t>& which) {
    const auto kept = kept_.find(which);
    kept_bytes_ -= kept->second.size();
    spare_ = std::move(kept->second);
    kept_.erase(kept);
  }

  const comm::Group& group_;
  const LoadInput& input_;
  ReadPlan plan_;
  SendRounds sends_;
  LoadCounts& counts_;
  std::optional<Failure> failure_;
  std::optional<Failure> read_failure_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::byte>> kept_;  ///< blocks, until all is passed on
  std::uint64_t kept_bytes_ = 0;
  std::vector<std::byte> spare_;
};

}  // namespace

void copy_to_memory(const Delivery& delivery, std::byte* array) {
  if (delivery.stored_offset) {
    copy(delivery.pattern, delivery.range, delivery.bytes, *delivery.stored_offset, array);
  } else {
    scatter(delivery.pattern, delivery.range, delivery.bytes, array);
  }
}

LoadCounts load_all(const comm::Group& group, const LoadInput& input) {
  LoadCounts counts;
  const WantedNames names = gather_wanted_names(group, input.wants);
  const std::uint64_t batches = count_batches(group, names, input.offers, input.rows_per_batch);
  for (std::uint64_t number = 0; number < batches; ++number) {
    const PlanInput to_plan{input.wants, input.offers, input.logical_ranks, input.buffer_bytes};
    Rounds(group, input, make_read_plan(group, to_plan, names, {number, batches}), counts).run();
  }
  return counts;
}

}  // namespace kedge::arrays
