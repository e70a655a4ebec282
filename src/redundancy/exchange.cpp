#include "redundancy/exchange.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/invariant.hpp"
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
  const StripeInput* input = nullptr;
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

class ExchangeRun {
 public:
  ExchangeRun(const comm::Group& group, std::span<const int> ranks, std::span<const LocalMember> local,
              std::span<const Stripe> stripes, const ExchangeSettings& settings)
      : group_(group),
        communicator_(group.communicator()),
        ranks_(ranks),
        stripes_(stripes),
        settings_(settings),
        files_by_position_(ranks.size()),
        own_(local.size()) {
    files_.reserve(local.size());
    for (const LocalMember& member : local) {
      files_by_position_.at(member.position) = &files_.emplace_back(stripes.size(), member);
    }
    // In a chain a step's sum is sent while others come in already: as many slots again, of one buffer each.
    const bool is_chain = settings.route == Route::chain;
    invariant(!is_chain || local.size() <= 1, "a chain goes through each process once");
    slots_ = std::make_shared<Slots>(settings.pieces.depth * (is_chain ? 2U : 1U));
    for (const Stripe& stripe : stripes) longest_ = std::max(longest_, stripe.length);
    piece_bytes_ = piece_bytes(is_chain ? 2 : ranks.size() - 1, settings.pieces);
    piece_bytes_ = std::min(piece_bytes_, std::max<std::uint64_t>(longest_, 1));
  }
  ExchangeRun(const ExchangeRun&) = delete;
  ExchangeRun& operator=(const ExchangeRun&) = delete;

  ~ExchangeRun() {
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
        pieces * stripes_.size(), settings_.pieces.depth, [&](std::uint64_t step) { post(at(step), slot(step)); },
        [&](std::uint64_t step) { complete(at(step), slot(step)); });
    for (Slot& left : *slots_) finish(left.sends);
    ExchangeResult result;
    for (ExchangeFiles& files : files_) {
      if (!result.failure) result.failure = files.failure();
      result.member_checksums.push_back(std::move(files.checksums()));
    }
    result.sent_bytes = sent_bytes_;
    return result;
  }

 private:
  /// The part of an input in this piece; empty if the input ends before it.
  static Contribution part_of(const StripeInput& input, const Piece& piece) {
    if (input.length <= piece.begin) return {&input, {}};
    return {&input, {piece.begin, std::min(piece.length, input.length - piece.begin)}};
  }

  /// The members other than the target with bytes in this piece, in the order of the inputs.
  const std::vector<Contribution>& senders(const Step& step) {
    senders_.clear();
    for (const StripeInput& input : step.stripe->inputs) {
      const Contribution contribution = part_of(input, step.piece);
      const bool is_sent = ranks_[input.member] != ranks_[step.stripe->target] && contribution.part.length > 0;
      if (is_sent) senders_.push_back(contribution);
    }
    return senders_;
  }

  [[nodiscard]] bool is_local(std::uint32_t member) const { return files_by_position_[member] != nullptr; }
  [[nodiscard]] bool is_local(const Contribution& contribution) const { return is_local(contribution.input->member); }

  void post(const Step& step, Slot& slot) {
    finish(slot.sends);
    slot.arrived.clear();
    const auto& senders = this->senders(step);
    const bool is_target = is_local(step.stripe->target);
    if (settings_.route == Route::direct) {
      std::size_t sent = 0;
      for (const Contribution& sender : senders) {
        if (is_target) receive(slot, sender.input->member, sender.part.length, sender.input->coefficient);
        else if (is_local(sender)) {
          send(slot, step.stripe->target, fetch(step, sender, slot.buffer(sent++)));
        }
      }
      return;
    }
    // The previous member in the chain sends a sum as long as its longest part.
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < senders.size(); ++i) {
      if (i > 0 && is_local(senders[i])) receive(slot, senders[i - 1].input->member, length, 1);
      length = std::max(length, senders[i].part.length);
    }
    if (is_target && !senders.empty()) receive(slot, senders.back().input->member, length, 1);
  }

  void complete(const Step& step, Slot& slot) {
    finish(slot.receives);
    if (step.piece.length == 0) return;
    if (is_local(step.stripe->target)) {
      write(step, slot);
      return;
    }
    if (settings_.route == Route::direct) return;
    const auto& senders = this->senders(step);
    const auto me = std::ranges::find_if(senders, [&](const auto& sender) { return is_local(sender); });
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
    terms.push_back({fetch(step, me, own_.front()), coefficient});
    std::uint64_t length = 0;
    for (const codec::Term& term : terms) length = std::max(length, term.bytes.size());
    const auto sum = slot.buffer(0).ensure_size(piece_bytes_).first(length);
    codec::combine_into(sum, terms);
    return sum;
  }

  /// At the target: writes the sum of the received parts and of this member's own.
  void write(const Step& step, Slot& slot) {
    auto terms = slot.arrived;
    std::size_t own = 0;
    for (const StripeInput& input : step.stripe->inputs) {
      const Contribution contribution = part_of(input, step.piece);
      if (!is_local(contribution) || contribution.part.length == 0) continue;
      terms.push_back({fetch(step, contribution, own_[own++]), input.coefficient});
    }
    files_by_position_[step.stripe->target]->write_sum(*step.stripe, step.piece, step.number, terms);
  }

  std::span<const std::byte> fetch(const Step& step, const Contribution& own, PageBuffer& buffer) {
    return files_by_position_[own.input->member]->read_input(*own.input, own.part, step.number, buffer);
  }

  void receive(Slot& slot, std::uint32_t member, std::uint64_t length, std::uint8_t coefficient) {
    const auto room = slot.buffer(slot.arrived.size()).ensure_size(piece_bytes_).first(length);
    slot.receives.push_back(communicator_.receive(ranks_[member], comm::channel::kRedundancySet, room));
    slot.arrived.push_back({room, coefficient});
  }

  void send(Slot& slot, std::uint32_t member, std::span<const std::byte> bytes) {
    slot.sends.push_back(communicator_.send(ranks_[member], comm::channel::kRedundancySet, bytes));
    sent_bytes_ += bytes.size();
  }

  void finish(std::vector<Communicator::Request>& requests) {
    if (!requests.empty()) communicator_.wait(requests, group_.deadline());
    requests.clear();
  }

  const comm::Group& group_;
  Communicator& communicator_;
  std::span<const int> ranks_;
  std::span<const Stripe> stripes_;
  const ExchangeSettings& settings_;
  std::vector<ExchangeFiles> files_;
  std::vector<ExchangeFiles*> files_by_position_;  // null where another process has the member
  std::shared_ptr<Slots> slots_;
  std::uint64_t longest_ = 0;  // of the stripes
  std::uint64_t piece_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::vector<PageBuffer> own_;  // not for messages
  std::vector<Contribution> senders_;
};

}  // namespace

Route route_for(std::span<const Stripe> stripes, std::span<const int> ranks) {
  if (std::set<int>(ranks.begin(), ranks.end()).size() < ranks.size()) return Route::direct;
  std::set<std::uint32_t> targets;
  std::size_t inputs = 0;
  for (const Stripe& stripe : stripes) {
    targets.insert(stripe.target);
    inputs = std::max(inputs, stripe.inputs.size());
  }
  return inputs > targets.size() ? Route::chain : Route::direct;
}

ExchangeResult exchange_stripes(const comm::Group& group, std::span<const int> ranks,
                                std::span<const LocalMember> local, std::span<const Stripe> stripes,
                                const ExchangeSettings& settings) {
  return ExchangeRun(group, ranks, local, stripes, settings).all();
}

std::uint32_t written_crc(std::uint32_t member, MemberPart part, std::span<const Stripe> stripes,
                          const StripeChecksums& checksums) {
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    if (stripes[i].target == member && stripes[i].part == part) {
      crc = crc32c_combine(crc, checksums.written[i], stripes[i].length);
    }
  }
  return crc;
}

bool matches_recorded(std::uint32_t member, MemberPart part, const RecordedPart& recorded,
                      std::span<const Stripe> stripes, const StripeChecksums& checksums, const MemberFile& file) {
  struct Read {
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
  };
  std::map<std::uint64_t, Read> reads;  // by offset; segments do not overlap
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    for (const StripeInput& input : stripes[i].inputs) {
      if (input.member != member || input.part != part) continue;
      Read& read = reads[input.offset];
      if (read.length == input.length && read.crc != checksums.read[i]) return false;
      if (read.length < input.length) read = {input.length, checksums.read[i]};
    }
  }
  std::uint32_t crc = 0;
  std::uint64_t end = 0;
  const auto read_to = [&](std::uint64_t offset) {
    if (offset > end) crc = file.bytes->checksum(file.offset + end, offset - end, crc);
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
