#include "arrays/rounds.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"
#include "format/on_disk.hpp"

namespace kedge::arrays {
namespace {

/// A grant must have room for some bytes beside head and checksum, or nothing would ever be sent.
constexpr std::uint64_t kLeastMessageBytes = 4096;
static_assert(kLeastMessageBytes > sizeof(ChunkHead) + kMessageTailBytes);

}  // namespace

RoundLimits limits_of(std::uint64_t buffer_bytes) {
  RoundLimits limits;
  limits.blocks_held = std::max<std::uint64_t>(1, buffer_bytes / 2 / format::kBlockBytes);
  limits.blocks_read = std::max<std::uint64_t>(1, 4 * (buffer_bytes / format::kBlockBytes));
  limits.out_bytes = buffer_bytes / 2;
  return limits;
}

SendRounds::SendRounds(std::span<const ReadOrder> orders, std::map<int, Grant> grants, const RoundLimits& limits,
                       int me)
    : orders_(orders), grants_(std::move(grants)), limits_(limits), me_(me) {
  skip_done_orders();
}

void SendRounds::skip_done_orders() {
  while (next_order_ < orders_.size() && next_block_ == orders_[next_order_].blocks.size()) {
    ++next_order_;
    next_block_ = 0;
  }
}

std::uint64_t SendRounds::bytes_of(std::size_t order, std::size_t block) const {
  const ReadOrder& region = orders_[order];
  return std::min(format::kBlockBytes, region.size_bytes - region.blocks[block] * format::kBlockBytes);
}

std::uint64_t SendRounds::counted(std::uint64_t kept_bytes) const noexcept {
  return kept_bytes - std::min(kept_bytes, format::kBlockBytes);
}

bool SendRounds::can_read_next() const {
  if (next_order_ == orders_.size() || held_.size() >= limits_.blocks_held) return false;
  return held_.empty() || counted(kept_bytes_ + bytes_of(next_order_, next_block_)) + sent_bytes_ <= limits_.out_bytes;
}

SendRounds::Held SendRounds::open_next() {
  const ReadOrder& order = orders_[next_order_];
  Held held{next_order_, next_block_, {}};
  const std::uint64_t begin = order.blocks[next_block_] * format::kBlockBytes;
  const std::uint64_t end = std::min(begin + format::kBlockBytes, order.size_bytes);
  kept_bytes_ += bytes_of(next_order_, next_block_);
  for (std::size_t part = 0; part < order.parts.size(); ++part) {
    const PackedRange range = order.parts[part].pattern.stored_in(begin, end);
    if (range.size_bytes() > 0) held.left.push_back({part, range});
  }
  ++next_block_;
  skip_done_orders();
  return held;
}

/// How many of the wanted bytes fit into what the receiver granted and what there is for messages.
std::uint64_t SendRounds::take_room(int receiver, std::uint64_t wanted) {
  const auto grant = grants_.find(receiver);
  invariant(grant != grants_.end(), "every receiver of a reader has granted it room");
  auto [room, is_first] = room_.try_emplace(receiver, 0);
  if (is_first && round_ % grant->second.turns == grant->second.turn) room->second = grant->second.bytes;
  const std::uint64_t tail = is_first ? kMessageTailBytes : 0;
  const std::uint64_t overhead = sizeof(ChunkHead) + tail;
  const std::uint64_t kept = counted(kept_bytes_);
  const std::uint64_t for_all = std::max(limits_.out_bytes, kept + kLeastMessageBytes) - kept;
  const std::uint64_t most = std::min(room->second, for_all - std::min(for_all, sent_bytes_));
  if (most <= overhead) {
    if (is_first) room_.erase(room);  // no message, no checksum
    return 0;
  }
  const std::uint64_t taken = std::min(wanted, most - overhead);
  room->second -= taken + overhead;
  sent_bytes_ += taken + overhead;
  return taken;
}

SendRounds::BlockTurn SendRounds::advance(Held& held, bool is_first) {
  BlockTurn turn{held.order, held.block, is_first, false, {}};
  for (Chunk& left : held.left) {
    const int receiver = orders_[held.order].parts[left.part].process;
    const std::uint64_t wanted = left.range.size_bytes();
    const std::uint64_t taken = receiver == me_ ? wanted : take_room(receiver, wanted);
    if (taken == 0) continue;
    turn.chunks.push_back({left.part, {left.range.first, left.range.first + taken}});
    left.range.first += taken;
  }
  std::erase_if(held.left, [](const Chunk& left) { return left.range.size_bytes() == 0; });
  turn.is_last = held.left.empty();
  if (turn.is_last) kept_bytes_ -= bytes_of(held.order, held.block);
  return turn;
}

std::vector<SendRounds::BlockTurn> SendRounds::next_round() {
  room_.clear();
  sent_bytes_ = 0;
  std::vector<BlockTurn> turns;
  for (Held& held : held_) turns.push_back(advance(held, false));
  std::erase_if(held_, [](const Held& held) { return held.left.empty(); });
  for (std::size_t read = 0; read < limits_.blocks_read && can_read_next(); ++read) {
    Held held = open_next();
    turns.push_back(advance(held, true));
    if (!held.left.empty()) held_.push_back(std::move(held));
  }
  ++round_;
  return turns;
}

}  // namespace kedge::arrays
