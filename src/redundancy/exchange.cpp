#include "redundancy/exchange.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/keep_forever.hpp"
#include "base/page_buffer.hpp"
#include "checksum/crc32c.hpp"
#include "comm/channels.hpp"
#include "comm/window.hpp"
#include "redundancy/exchange_files.hpp"

namespace kedge::redundancy {
namespace {

/// A member's bytes in a piece of a stripe.
struct Contribution {
  const Input* input = nullptr;
  Piece part;
};

/// One piece of a stripe, which a step exchanges.
struct Step {
  const Stripe* stripe = nullptr;
  std::size_t number = 0;  // of the stripe
  Piece piece;
};

/// A step in progress. Messages are received into the buffers, one each, or one is sent from the first. In a chain, the
/// received sum is added to in place and sent on.
struct Slot {
  std::vector<Communicator::Request> receives;
  std::vector<Communicator::Request> sends;
  std::vector<PageBuffer> buffers;
  std::vector<codec::Term> arrived;  // the terms of the posted receives

  PageBuffer& buffer(std::size_t number) {
    if (buffers.size() <= number) buffers.resize(number + 1);
    return buffers[number];
  }
};

/// All message memory except mapped files.
using Slots = std::vector<Slot>;

class Run {
 public:
  Run(const comm::Group& group, const Membership& membership, std::span<const Stripe> stripes,
      const MemberFile& container, const MemberFile& parity, const ExchangeSettings& traffic)
      : group_(group),
        communicator_(group.communicator()),
        membership_(membership),
        stripes_(stripes),
        traffic_(traffic),
        files_(stripes.size(), container, parity) {
    // A chain needs twice the slots, of one buffer each: it still sends a step's sum while it receives the next.
    const bool is_chain = traffic.route == Route::chain;
    slots_ = std::make_shared<Slots>(traffic.pieces.depth * (is_chain ? 2U : 1U));
    for (const Stripe& stripe : stripes) longest_ = std::max(longest_, stripe.length);
    piece_bytes_ = piece_bytes(is_chain ? 2 : membership.ranks.size() - 1, traffic.pieces);
    piece_bytes_ = std::min(piece_bytes_, std::max<std::uint64_t>(longest_, 1));
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  ~Run() {
    bool under_way = false;
    for (Slot& slot : *slots_) {
      const auto open = [](const auto& request) { return request != nullptr; };
      under_way |= std::ranges::any_of(slot.receives, open) || std::ranges::any_of(slot.sends, open);
      slot.receives.clear();
      slot.sends.clear();
    }
    // Messages of a wait that timed out may still use this memory.
    if (under_way) keep_forever(slots_);
  }

  /// Goes through the stripes' pieces in turn, which keeps all targets busy.
  ExchangeResult all() {
    const std::uint64_t pieces = (longest_ + piece_bytes_ - 1) / piece_bytes_;
    const auto at = [&](std::uint64_t step) {
      const std::size_t number = step % stripes_.size();
      return Step{&stripes_[number], number, piece_of(step / stripes_.size(), piece_bytes_, stripes_[number].length)};
    };
    const auto slot = [&](std::uint64_t step) -> Slot& { return (*slots_)[step % slots_->size()]; };
    comm::run_window(
        pieces * stripes_.size(), traffic_.pieces.depth, [&](std::uint64_t step) { post(at(step), slot(step)); },
        [&](std::uint64_t step) { complete(at(step), slot(step)); });
    for (Slot& left : *slots_) finish(left.sends);
    return std::move(files_.result());
  }

 private:
  /// The part of an input in this piece; empty if the input ends before it.
  static Contribution part_of(const Input& input, const Piece& piece) {
    if (input.length <= piece.begin) return {&input, {}};
    return {&input, {piece.begin, std::min(piece.length, input.length - piece.begin)}};
  }

  /// The members other than the target with bytes in this piece, in the order of the inputs.
  const std::vector<Contribution>& senders(const Step& step) {
    senders_.clear();
    for (const Input& input : step.stripe->inputs) {
      const Contribution contribution = part_of(input, step.piece);
      const bool is_sent = input.member != step.stripe->target && contribution.part.length > 0;
      if (is_sent) senders_.push_back(contribution);
    }
    return senders_;
  }

  [[nodiscard]] bool is_mine(const Contribution& contribution) const {
    return contribution.input->member == membership_.me;
  }

  void post(const Step& step, Slot& slot) {
    finish(slot.sends);
    slot.arrived.clear();
    const auto& senders = this->senders(step);
    const bool is_target = step.stripe->target == membership_.me;
    if (traffic_.route == Route::direct) {
      for (const Contribution& sender : senders) {
        if (is_target) receive(slot, sender.input->member, sender.part.length, sender.input->coefficient);
        else if (is_mine(sender)) send(slot, step.stripe->target, fetch(step, sender, slot.buffer(0)));
      }
      return;
    }
    // The previous member in the chain sends a sum as long as its longest part.
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < senders.size(); ++i) {
      if (i > 0 && is_mine(senders[i])) receive(slot, senders[i - 1].input->member, length, 1);
      length = std::max(length, senders[i].part.length);
    }
    if (is_target && !senders.empty()) receive(slot, senders.back().input->member, length, 1);
  }

  void complete(const Step& step, Slot& slot) {
    finish(slot.receives);
    if (step.piece.length == 0) return;
    if (step.stripe->target == membership_.me) {
      write(step, slot);
      return;
    }
    if (traffic_.route == Route::direct) return;
    const auto& senders = this->senders(step);
    const auto me = std::ranges::find_if(senders, [&](const auto& sender) { return is_mine(sender); });
    if (me == senders.end()) return;
    const bool is_last = std::next(me) == senders.end();
    send(slot, is_last ? step.stripe->target : std::next(me)->input->member, add_own(step, *me, slot));
  }

  /// Adds into the memory of the received sum, which stays valid until it is sent; returns this member's own bytes if
  /// nothing was received.
  std::span<const std::byte> add_own(const Step& step, const Contribution& me, Slot& slot) {
    const std::uint8_t coefficient = me.input->coefficient;
    if (slot.arrived.empty() && coefficient == 1) return fetch(step, me, slot.buffer(0));
    auto terms = slot.arrived;
    terms.push_back({fetch(step, me, own_), coefficient});
    std::uint64_t length = 0;
    for (const codec::Term& term : terms) length = std::max(length, term.bytes.size());
    const auto sum = slot.buffer(0).room(piece_bytes_).first(length);
    codec::combine(sum, terms);
    return sum;
  }

  /// At the target: writes the sum of the received parts and of this member's own.
  void write(const Step& step, Slot& slot) {
    auto terms = slot.arrived;
    for (const Input& input : step.stripe->inputs) {
      const Contribution own = part_of(input, step.piece);
      if (!is_mine(own) || own.part.length == 0) continue;
      terms.push_back({fetch(step, own, own_), input.coefficient});
    }
    files_.store(*step.stripe, step.piece, step.number, terms);
  }

  std::span<const std::byte> fetch(const Step& step, const Contribution& own, PageBuffer& buffer) {
    return files_.fetch(*own.input, own.part, step.number, buffer);
  }

  void receive(Slot& slot, std::uint32_t member, std::uint64_t length, std::uint8_t coefficient) {
    const auto room = slot.buffer(slot.arrived.size()).room(piece_bytes_).first(length);
    slot.receives.push_back(communicator_.receive(membership_.ranks.at(member), comm::channel::kRedundancySet, room));
    slot.arrived.push_back({room, coefficient});
  }

  void send(Slot& slot, std::uint32_t member, std::span<const std::byte> bytes) {
    slot.sends.push_back(communicator_.send(membership_.ranks.at(member), comm::channel::kRedundancySet, bytes));
    files_.result().sent_bytes += bytes.size();
  }

  void finish(std::vector<Communicator::Request>& requests) {
    if (!requests.empty()) communicator_.wait(requests, group_.deadline());
    requests.clear();
  }

  const comm::Group& group_;
  Communicator& communicator_;
  const Membership& membership_;
  std::span<const Stripe> stripes_;
  const ExchangeSettings& traffic_;
  ExchangeFiles files_;
  std::shared_ptr<Slots> slots_;
  std::uint64_t longest_ = 0;  // of the stripes
  std::uint64_t piece_bytes_ = 0;
  PageBuffer own_;  // not for messages
  std::vector<Contribution> senders_;
};

}  // namespace

Route route_for(std::span<const Stripe> stripes) {
  std::set<std::uint32_t> targets;
  std::size_t inputs = 0;
  for (const Stripe& stripe : stripes) {
    targets.insert(stripe.target);
    inputs = std::max(inputs, stripe.inputs.size());
  }
  return inputs > targets.size() ? Route::chain : Route::direct;
}

ExchangeResult exchange(const comm::Group& group, const Membership& membership, std::span<const Stripe> stripes,
                        const MemberFile& container, const MemberFile& parity, const ExchangeSettings& traffic) {
  return Run(group, membership, stripes, container, parity, traffic).all();
}

std::uint32_t crc_written(std::uint32_t member, Part part, std::span<const Stripe> stripes,
                          const ExchangeResult& passed) {
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    if (stripes[i].target == member && stripes[i].part == part) {
      crc = crc32c_combine(crc, passed.written[i], stripes[i].length);
    }
  }
  return crc;
}

bool matches_recorded(std::uint32_t member, Part part, const Recorded& recorded, std::span<const Stripe> stripes,
                      const ExchangeResult& passed, const MemberFile& file) {
  struct Read {
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
  };
  std::map<std::uint64_t, Read> reads;  // by offset; segments do not overlap
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    for (const Input& input : stripes[i].inputs) {
      if (input.member != member || input.part != part) continue;
      Read& read = reads[input.offset];
      if (read.length == input.length && read.crc != passed.read[i]) return false;
      if (read.length < input.length) read = {input.length, passed.read[i]};
    }
  }
  std::uint32_t crc = 0;
  std::uint64_t end = 0;
  const auto read_to = [&](std::uint64_t offset) {
    if (offset > end) crc = file.bytes->checksum(file.begin + end, offset - end, crc);
    end = std::max(end, offset);
  };
  for (const auto& [offset, read] : reads) {
    read_to(offset);
    crc = crc32c_combine(crc, read.crc, read.length);
    end = offset + read.length;
  }
  read_to(recorded.size_bytes);
  return end == recorded.size_bytes && crc == recorded.crc;
}

}  // namespace kedge::redundancy
