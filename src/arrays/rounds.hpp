// What a reader reads and sends in each round of a load. It sends no receiver more than that one granted, keeps a few
// blocks and a limited number of bytes for messages, and in each round does what it can: as all take part in every
// round, and whatever is sent is received in it, nobody waits for room. Pure: bytes are read and sent by load_all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "arrays/checked_messages.hpp"
#include "arrays/read_plan.hpp"

namespace kedge::arrays {

/// What a message adds to its bytes: a head before each range, and a checksum at its end.
struct ChunkHead {
  std::int32_t steward = 0;
  std::uint32_t number = 0;  ///< of the part, by the steward
  std::uint64_t first = 0;   ///< packed bytes of the part
  std::uint64_t size_bytes = 0;
};

struct RoundLimits {
  std::size_t blocks_held = 1;  ///< at the end of a round, because not all of their bytes could be sent
  std::size_t blocks_read = 1;  ///< in a round, so that others need not wait long for a reader who sends nothing
  std::uint64_t out_bytes = 0;  ///< of messages to all receivers and of blocks, beside one block
};
/// A receiver takes half of its buffer for what it receives (grants_of); the other half is for what it sends.
[[nodiscard]] RoundLimits limits_of(std::uint64_t buffer_bytes);

class SendRounds {
 public:
  /// Of the orders of process `me`, which must live on; `grants` has each other process in them.
  SendRounds(std::span<const ReadOrder> orders, std::map<int, Grant> grants, const RoundLimits& limits, int me);

  /// Bytes of a part that are delivered, to this process itself, or sent.
  struct Chunk {
    std::size_t part = 0;  ///< of the order
    PackedRange range;
  };
  /// A block, and the messages made of it in a round.
  struct BlockTurn {
    std::size_t order = 0;
    std::size_t block = 0;  ///< its position in the order
    bool is_first = false;  ///< it must be read
    bool is_last = false;   ///< it need not be kept for the next round
    std::vector<Chunk> chunks;
  };
  /// Whether the next round has anything to do, or one after it.
  [[nodiscard]] bool has_more() const noexcept { return !held_.empty() || next_order_ < orders_.size(); }
  [[nodiscard]] std::vector<BlockTurn> next_round();

 private:
  struct Held {
    std::size_t order = 0;
    std::size_t block = 0;
    std::vector<Chunk> left;
  };
  [[nodiscard]] Held open_next();
  [[nodiscard]] BlockTurn advance(Held& held, bool is_first);
  [[nodiscard]] std::uint64_t take_room(int receiver, std::uint64_t wanted);
  [[nodiscard]] bool can_read_next() const;
  [[nodiscard]] std::uint64_t bytes_of(std::size_t order, std::size_t block) const;
  /// Bytes that blocks take beside messages, all but one of 4 MiB.
  [[nodiscard]] std::uint64_t counted(std::uint64_t kept_bytes) const noexcept;
  void skip_done_orders();

  std::span<const ReadOrder> orders_;
  std::map<int, Grant> grants_;
  RoundLimits limits_;
  int me_;
  std::size_t next_order_ = 0;
  std::size_t next_block_ = 0;
  std::vector<Held> held_;
  std::uint64_t round_ = 0;
  std::map<int, std::uint64_t> room_;  ///< left in this round, by receiver
  std::uint64_t sent_bytes_ = 0;       ///< in this round, to all
  std::uint64_t kept_bytes_ = 0;       ///< of blocks, the one that is at hand included
};

}  // namespace kedge::arrays
