#include "redundancy/exchange.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "codec/xor.hpp"
#include "comm/window.hpp"
#include "redundancy/plan_pieces.hpp"

namespace kedge::redundancy {
namespace {

constexpr int kChannel = 512;                                     // a user channel that nobody else takes
constexpr std::uint64_t kBlockBytes = std::uint64_t{128} << 10U;  // XORed and written while in the cache

/// Memory as aligned as the codec likes it. It grows to what is asked for and is used again.
class Buffer {
 public:
  std::span<std::byte> room(std::uint64_t size_bytes) {
    const std::uint64_t lines = (size_bytes + sizeof(Line) - 1) / sizeof(Line);
    if (lines_.size() < lines) lines_ = std::vector<Line>(lines);
    return std::as_writable_bytes(std::span(lines_)).first(size_bytes);
  }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  std::vector<Line> lines_;
};

/// One step under way.
struct Slot {
  std::vector<Communicator::Request> requests;
  std::vector<Buffer> incoming;                      // one for each input of the stripe that comes by message
  std::vector<std::span<const std::byte>> received;  // what was posted into them
  Buffer outgoing;
};

/// All memory that messages are sent from and received into, but for mapped files.
struct Slots {
  std::array<Slot, kStepsAhead> slots;
};

/// A stripe's piece as this step moves it.
struct Step {
  const Stripe* stripe = nullptr;
  std::size_t number = 0;  // of the stripe
  Piece piece;
};

class Run {
 public:
  Run(Communicator& communicator, const Membership& membership, std::span<const Stripe> stripes,
      const PartFile& container, const PartFile& parity, std::chrono::duration<double> patience)
      : communicator_(communicator),
        membership_(membership),
        stripes_(stripes),
        container_(container),
        parity_(parity),
        patience_(patience),
        piece_bytes_(piece_bytes(membership.ranks.size(), kExchangeBufferBytes)) {
    result_.written.resize(stripes.size());
    result_.read.resize(stripes.size());
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  ~Run() {
    bool under_way = false;
    for (Slot& slot : slots_->slots) {
      under_way |= std::ranges::any_of(slot.requests, [](const auto& request) { return request != nullptr; });
      slot.requests.clear();
    }
    // Messages that a wait gave up on may still use this memory.
    if (under_way) keep_forever(slots_);
  }

  Exchanged all() {
    std::size_t first = 0;
    for (const std::size_t length : waves(stripes_)) {
      wave(first, length);
      first += length;
    }
    return std::move(result_);
  }

 private:
  /// Ends when all its steps are complete here: a later wave may read what this one wrote.
  void wave(std::size_t first, std::size_t count) {
    std::uint64_t longest = 0;
    for (const Stripe& stripe : stripes_.subspan(first, count)) longest = std::max(longest, stripe.length);
    const std::uint64_t pieces = (longest + piece_bytes_ - 1) / piece_bytes_;
    const auto at = [&](std::uint64_t step) {
      const std::size_t number = first + step % count;
      return Step{&stripes_[number], number, piece_of(step / count, piece_bytes_, stripes_[number].length)};
    };
    comm::run_window(
        pieces * count, kStepsAhead, [&](std::uint64_t step) { post(at(step), slots_->slots[step % kStepsAhead]); },
        [&](std::uint64_t step) { complete(at(step), slots_->slots[step % kStepsAhead]); });
  }

  /// The part of an input that belongs to a piece of its stripe; empty if the input ends before.
  static Piece part_of(const Input& input, const Piece& piece) {
    if (input.length <= piece.begin) return {};
    return {piece.begin, std::min(piece.length, input.length - piece.begin)};
  }

  void post(const Step& step, Slot& slot) {
    slot.requests.clear();
    slot.received.clear();
    if (step.stripe->target == membership_.me) {
      receive(step, slot);
      return;
    }
    for (const Input& input : step.stripe->inputs) {
      const Piece part = part_of(input, step.piece);
      if (input.member != membership_.me || part.length == 0) continue;
      const auto bytes = fetch(input, part, step.number, slot.outgoing);
      slot.requests.push_back(communicator_.send(rank_of(step.stripe->target), kChannel, bytes));
      result_.sent_bytes += bytes.size();
    }
  }

  void receive(const Step& step, Slot& slot) {
    for (const Input& input : step.stripe->inputs) {
      const Piece part = part_of(input, step.piece);
      if (input.member == membership_.me || part.length == 0) continue;
      const std::size_t next = slot.received.size();
      if (slot.incoming.size() == next) slot.incoming.emplace_back();
      const auto room = slot.incoming[next].room(part.length);
      slot.requests.push_back(communicator_.receive(rank_of(input.member), kChannel, room));
      slot.received.emplace_back(room);
    }
  }

  void complete(const Step& step, Slot& slot) {
    if (!slot.requests.empty()) communicator_.wait(slot.requests, Deadline::after(patience_));
    slot.requests.clear();
    if (step.stripe->target != membership_.me || step.piece.length == 0) return;
    auto sources = slot.received;
    for (const Input& input : step.stripe->inputs) {
      const Piece part = part_of(input, step.piece);
      if (input.member == membership_.me && part.length > 0) {
        sources.push_back(fetch(input, part, step.number, own_));
      }
    }
    store(step, sources);
  }

  /// This member's bytes of an input, from where they lie or through `buffer`; zeros after a failure.
  std::span<const std::byte> fetch(const Input& input, const Piece& part, std::size_t number, Buffer& buffer) {
    const PartFile& file = file_of(input.part);
    const std::uint64_t offset = file.begin + input.offset + part.begin;
    std::uint32_t& crc = result_.read[number];
    std::span<const std::byte> bytes;
    if (!result_.failure) {
      result_.failure = attempt([&] {
        if (file.mapped.empty()) {
          const auto room = buffer.room(part.length);
          crc = opened(file, "read").copy_out(offset, room, crc);
          bytes = room;
          return;
        }
        if (offset > file.mapped.size() || part.length > file.mapped.size() - offset) {
          throw Error(ErrorCode::corrupt, compose("a file of the redundancy set ends at byte {} and should reach {}",
                                                  file.mapped.size(), offset + part.length));
        }
        bytes = file.mapped.subspan(offset, part.length);
        crc = crc32c(bytes, crc);
      });
    }
    if (!result_.failure) return bytes;
    const auto zeros = buffer.room(part.length);
    std::ranges::fill(zeros, std::byte{0});
    return zeros;
  }

  /// XOR of the sources to its place in this member's file, block by block.
  void store(const Step& step, std::span<const std::span<const std::byte>> sources) {
    if (result_.failure) return;
    const PartFile& file = file_of(step.stripe->part);
    const std::uint64_t offset = file.begin + step.stripe->offset + step.piece.begin;
    std::uint32_t& crc = result_.written[step.number];
    result_.failure = attempt([&] {
      fs::ByteAccess& out = opened(file, "write");
      if (sources.size() == 1 && sources.front().size() == step.piece.length) {
        crc = out.copy_in(offset, sources.front(), crc);
        return;
      }
      std::vector<std::span<const std::byte>> blocks;
      for (std::uint64_t done = 0; done < step.piece.length; done += kBlockBytes) {
        const auto sum = sum_.room(std::min(kBlockBytes, step.piece.length - done));
        blocks.clear();
        for (const auto& source : sources) {
          if (source.size() > done) blocks.push_back(source.subspan(done, std::min(sum.size(), source.size() - done)));
        }
        codec::xor_into(sum, blocks);
        crc = out.copy_in(offset + done, sum, crc);
      }
    });
  }

  [[nodiscard]] const PartFile& file_of(Part part) const { return part == Part::container ? container_ : parity_; }
  [[nodiscard]] int rank_of(std::uint32_t member) const { return membership_.ranks.at(member); }

  static fs::ByteAccess& opened(const PartFile& file, const char* verb) {
    if (file.bytes != nullptr) return *file.bytes;
    throw Error(
        ErrorCode::io,
        compose("this rank has no open file to {} for its redundancy set: see why it could not be opened", verb));
  }

  Communicator& communicator_;
  const Membership& membership_;
  std::span<const Stripe> stripes_;
  const PartFile& container_;
  const PartFile& parity_;
  std::chrono::duration<double> patience_;
  std::uint64_t piece_bytes_;
  std::shared_ptr<Slots> slots_ = std::make_shared<Slots>();
  Buffer own_;  // not for messages: this member's input where it is the target itself
  Buffer sum_;
  Exchanged result_;
};

}  // namespace

Exchanged exchange(Communicator& communicator, const Membership& membership, std::span<const Stripe> stripes,
                   const PartFile& container, const PartFile& parity, std::chrono::duration<double> patience) {
  return Run(communicator, membership, stripes, container, parity, patience).all();
}

std::optional<std::uint32_t> crc_of_container(std::uint32_t member, std::uint64_t size_bytes,
                                              std::span<const Stripe> stripes, const Exchanged& passed) {
  struct Read {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
  };
  std::vector<Read> reads;
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    for (const Input& input : stripes[i].inputs) {
      if (input.member != member || input.part != Part::container) continue;
      reads.push_back({input.offset, input.length, passed.read[i]});
    }
  }
  std::ranges::sort(reads, {}, &Read::offset);
  std::uint32_t crc = 0;
  std::uint64_t end = 0;
  for (const Read& read : reads) {
    if (read.offset != end) return std::nullopt;
    crc = crc32c_combine(crc, read.crc, read.length);
    end += read.length;
  }
  return end == size_bytes ? std::optional(crc) : std::nullopt;
}

}  // namespace kedge::redundancy
