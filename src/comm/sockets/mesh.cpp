#include "comm/sockets/mesh.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::comm {
namespace {

Failure rank_failed_error(std::string message) { return {ErrorCode::rank_failed, std::move(message)}; }

Failure too_large_error(const ArrivedMessage& arrival, std::size_t expected) {
  return {ErrorCode::bad_state, compose("a message of {} bytes from rank {} is larger than the {} that were expected",
                                        arrival.size(), arrival.from, expected)};
}

std::chrono::milliseconds round_up_to_ms(std::chrono::steady_clock::duration time) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(time, std::chrono::steady_clock::duration::zero()));
}

}  // namespace

Mesh::Mesh(MeshPlan plan)
    : rank_(plan.rank),
      addresses_(std::move(plan.addresses)),
      token_(plan.token),
      welcome_token_(plan.welcome_token),
      process_id_(::getpid()),
      acceptor_(std::move(plan.listener), rank_, size(), token_, welcome_token_),
      wake_event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!wake_event_.is_open()) {
    throw Error(Failure{ErrorCode::io, "no file descriptor left; raise the limit (ulimit -n)", -1, {}, errno});
  }
}

Mesh::~Mesh() {
  if (::getpid() != process_id_) return;  // the connections are the parent's; descriptors are closed here, no more
  // Unread bytes would reset the connection when it is closed, and the goodbye might not arrive.
  if (!failure_ && !interrupted_) (void)attempt([this] { progress(std::chrono::milliseconds(0)); });
  const bool is_orderly =
      !failure_ && !interrupted_ && !has_abandoned_message_ && std::ranges::all_of(peers_, [](const auto& entry) {
        const Peer& peer = entry.second;
        return peer.offered_sends.empty() && peer.accepted_receives.empty() &&
               (!peer.outgoing || peer.outgoing->is_idle());
      });
  const auto now = std::chrono::steady_clock::now();
  for (auto& [rank, peer] : peers_) {
    if (is_orderly && peer.outgoing && peer.outgoing->is_open()) {
      peer.outgoing->queue_frame({FrameHead{.kind = FrameKind::goodbye}});
      peer.outgoing->progress(now);
    }
    if (is_orderly && peer.incoming) peer.incoming->send_goodbye();
  }
  // A child of a fork has the same sockets: without this the others would not see the end before it ends, too.
  for (auto& [rank, peer] : peers_) {
    if (peer.outgoing) peer.outgoing->shut_down();
    if (peer.incoming) peer.incoming->shut_down();
  }
}

std::uint16_t Mesh::next_channel() {
  if (channel_count_ < std::numeric_limits<std::uint16_t>::max()) return ++channel_count_;
  throw Error(ErrorCode::bad_state, "no channel is left over TCP: too many communicators were duplicated");
}

OutgoingConnection& Mesh::connection_to(int rank) {
  Peer& peer = peers_[rank];
  if (!peer.outgoing) {
    const Greeting greeting{kGreetingMagic, token_, static_cast<std::uint32_t>(rank_),
                            static_cast<std::uint32_t>(rank)};
    peer.outgoing.emplace(addresses_.at(static_cast<std::size_t>(rank)), greeting, welcome_token_);
  }
  return *peer.outgoing;
}

std::shared_ptr<MessageState> Mesh::send(int to, const Lane& lane, std::span<const std::byte> bytes) {
  auto message = std::make_shared<MessageState>();
  message->peer = to;
  message->source = bytes;
  OutgoingConnection& out = connection_to(to);
  Peer& peer = peers_[to];
  FrameHead head{.channel = lane.channel, .tag = lane.tag, .size = bytes.size()};
  if (bytes.size() <= kSmallMessageBytes && credit_needed(bytes.size()) <= peer.credit_bytes) {
    peer.credit_bytes -= credit_needed(bytes.size());
    out.queue_frame({head, bytes, message});
  } else {
    head.kind = FrameKind::offer;
    head.id = ++peer.last_offer;
    peer.offered_sends[head.id] = message;
    out.queue_frame({head});
  }
  out.progress(std::chrono::steady_clock::now());
  return message;
}

std::shared_ptr<MessageState> Mesh::receive(int from, const Lane& lane, std::span<std::byte> target) {
  auto message = std::make_shared<MessageState>();
  message->peer = from;
  message->target = target;
  connection_to(from).progress(std::chrono::steady_clock::now());  // through which its end is seen
  auto arrival = inbox_.take_message(lane, from);
  if (!arrival) {
    inbox_.add_receive(lane, message);
  } else if (arrival->offer) {
    --peers_[arrival->from].unexpected_offer_count;
    deliver_offer(message, *arrival);
  } else {
    deliver_message(*message, *std::move(arrival));
  }
  return message;
}

bool Mesh::is_complete(const MessageState& message) const {
  if (message.is_done) {
    if (message.failure) throw Error(*message.failure);
    return true;
  }
  if (interrupted_) throw Error(ErrorCode::timeout, "this communicator was interrupted");
  if (failure_) throw Error(*failure_);
  const auto peer = peers_.find(message.peer);
  if (peer != peers_.end() && peer->second.has_left) {
    throw Error(rank_failed_error(
        compose("rank {} shut down its engine while rank {} was still waiting for it; call finalize on all ranks "
                "before any of them destroys its engine",
                message.peer, rank_)));
  }
  return false;
}

bool Mesh::test(const MessageState& message) {
  if (is_complete(message)) return true;
  progress(std::chrono::milliseconds(0));
  return is_complete(message);
}

bool Mesh::wait(const MessageState& message, Deadline deadline) {
  WaitTimer wait_timer(deadline);
  while (!is_complete(message)) {
    if (wait_timer.is_over()) {
      has_abandoned_message_ = true;
      return false;
    }
    progress(std::chrono::ceil<std::chrono::milliseconds>(wait_timer.slice()));  // events end it at once
  }
  return true;
}

void Mesh::interrupt() noexcept {
  interrupted_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_event_.descriptor(), &one, sizeof one);  // fails only where it is raised already
}

void Mesh::leave(std::string_view why) noexcept {
  (void)attempt([&] { fail_mesh(rank_, std::string(why), std::string(truncate_utf8(why, kReasonBytesMax))); });
}

/// Sleeps until something happens on any connection, and carries on whatever can be.
void Mesh::progress(std::chrono::milliseconds wait_max) {
  const auto now = std::chrono::steady_clock::now();
  poll_descriptors_.clear();
  poll_descriptors_.push_back({wake_event_.descriptor(), POLLIN, 0});
  acceptor_.add_poll_events(poll_descriptors_, now);
  acceptor_poll_end_ = poll_descriptors_.size();
  const auto add = [this](int descriptor, short events) {
    poll_descriptors_.push_back({descriptor, events, 0});
    return poll_descriptors_.size() - 1;
  };
  for (auto& [rank, peer] : peers_) {
    peer.incoming_poll_index = peer.incoming ? add(peer.incoming->descriptor(), POLLIN) : 0;
    peer.outgoing_poll_index = peer.outgoing && peer.outgoing->descriptor() >= 0
                                   ? add(peer.outgoing->descriptor(), peer.outgoing->poll_events())
                                   : 0;
  }
  const auto timeout = poll_timeout(wait_max, now);
  // Interrupted, it has looked at nothing: another turn.
  if (::poll(poll_descriptors_.data(), poll_descriptors_.size(), static_cast<int>(timeout.count())) >= 0) {
    progress_connections(std::chrono::steady_clock::now());
  }
}

std::chrono::milliseconds Mesh::poll_timeout(std::chrono::milliseconds wait_max, SocketTime now) const {
  constexpr std::chrono::milliseconds kUnknownSlice{100};
  if (acceptor_.needs_progress(now)) wait_max = std::min(wait_max, kUnknownSlice);
  for (const auto& [rank, peer] : peers_) {
    if (!peer.outgoing) continue;
    if (const auto retry_at = peer.outgoing->retry_at()) wait_max = std::min(wait_max, round_up_to_ms(*retry_at - now));
  }
  return wait_max;
}

void Mesh::progress_connections(SocketTime now) {
  bool is_knocked = acceptor_.needs_progress(now);
  for (std::size_t place = 1; place < acceptor_poll_end_; ++place) is_knocked = is_knocked || is_ready(place);
  if (is_knocked) admit_ranks(now);
  for (auto& [rank, peer] : peers_) {  // a map stays as it is while others are added
    if (peer.incoming && is_ready(peer.incoming_poll_index)) peer.incoming->read_frames(*this);
    if (peer.outgoing && (is_ready(peer.outgoing_poll_index) || peer.outgoing->retry_at()))
      peer.outgoing->progress(now);
    if (failure_) return;
  }
  handle_closed_connections();
}

void Mesh::admit_ranks(SocketTime now) {
  for (ConnectionAcceptor::AcceptedRank& one : acceptor_.accept_ranks(now)) {
    Peer& peer = peers_[one.from];
    if (std::exchange(peer.was_admitted, true)) continue;  // whoever that is: the rank is here
    peer.incoming.emplace(std::move(one.socket), one.from);
  }
}

void Mesh::handle_closed_connections() {
  for (auto& [rank, peer] : peers_) {
    if (peer.incoming && peer.incoming->end()) {
      const CloseReason end = *peer.incoming->end();
      peer.incoming.reset();
      handle_close(rank, peer, end);
    }
    // The last frames of a rank that left may come later than the end of the other direction.
    const bool is_told_by_in =
        peer.incoming && peer.outgoing && peer.outgoing->end() && peer.outgoing->end()->is_orderly;
    if (peer.outgoing && peer.outgoing->end() && !peer.has_left && !is_told_by_in)
      handle_close(rank, peer, *peer.outgoing->end());
    if (failure_) return;
  }
}

void Mesh::handle_close(int rank, Peer& peer, const CloseReason& end) {
  if (end.is_orderly || peer.has_left) peer.has_left = true;
  else fail_mesh(rank, compose("rank {} {}", rank, end.reason));
}

/// Other ranks may wait for ranks that wait for this one: they get the dead rank, and the reason, if that rank gave
/// one.
void Mesh::fail_mesh(int rank, const std::string& why, std::string reason) {
  failure_ = rank_failed_error(why);
  if (failure_reason_.empty()) failure_reason_ = std::move(reason);
  const auto text = std::as_bytes(std::span(failure_reason_));
  const auto now = std::chrono::steady_clock::now();
  for (auto& [other, peer] : peers_) {
    if (other == rank || !peer.outgoing || !peer.outgoing->is_open()) continue;
    peer.outgoing->queue_answer({.kind = FrameKind::lost, .size = text.size(), .id = static_cast<std::uint64_t>(rank)},
                                text);
    peer.outgoing->progress(now);
  }
}

void Mesh::grant_credit(int from, std::uint64_t bytes) {
  Peer& peer = peers_[from];
  peer.received_bytes += bytes;
  if (peer.received_bytes < kCreditBytes / 2) return;
  peer.uncredited_bytes -= peer.received_bytes;
  OutgoingConnection& out = connection_to(from);
  out.queue_answer({.kind = FrameKind::credit, .size = std::exchange(peer.received_bytes, 0)});
  out.progress(std::chrono::steady_clock::now());
}

void Mesh::deliver_message(MessageState& receive, ArrivedMessage arrival) {
  receive.is_done = true;
  if (arrival.bytes.size() > receive.target.size()) {
    receive.failure = too_large_error(arrival, receive.target.size());
  } else if (!arrival.bytes.empty()) {
    std::memcpy(receive.target.data(), arrival.bytes.data(), arrival.bytes.size());
  }
  grant_credit(arrival.from, credit_needed(arrival.bytes.size()));
}

void Mesh::deliver_offer(const std::shared_ptr<MessageState>& receive, const ArrivedMessage& arrival) {
  FrameHead answer{.kind = FrameKind::accept, .id = arrival.offer->id};
  if (arrival.size() > receive->target.size()) {
    receive->is_done = true;
    receive->failure = too_large_error(arrival, receive->target.size());
    answer.kind = FrameKind::refuse;
  } else {
    peers_[arrival.from].accepted_receives[answer.id] = {receive, arrival.size()};
  }
  OutgoingConnection& out = connection_to(arrival.from);
  out.queue_answer(answer);
  out.progress(std::chrono::steady_clock::now());
}

}  // namespace kedge::comm
