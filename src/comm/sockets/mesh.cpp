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

Failure lost(std::string message) { return {ErrorCode::rank_failed, std::move(message)}; }

Failure too_large(const Arrival& arrival, std::size_t expected) {
  return {ErrorCode::bad_state, compose("a message of {} bytes from rank {} is larger than the {} that were expected",
                                        arrival.size(), arrival.from, expected)};
}

std::chrono::milliseconds rounded_up(std::chrono::steady_clock::duration time) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(time, std::chrono::steady_clock::duration::zero()));
}

}  // namespace

Mesh::Mesh(MeshPlan plan)
    : rank_(plan.rank),
      addresses_(std::move(plan.addresses)),
      token_(plan.token),
      welcome_(plan.welcome),
      process_(::getpid()),
      acceptor_(std::move(plan.listener), rank_, size(), token_, welcome_),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!wake_.is_open()) {
    throw Error(Failure{ErrorCode::io, "no file descriptor left; raise the limit (ulimit -n)", -1, {}, errno});
  }
}

Mesh::~Mesh() {
  if (::getpid() != process_) return;  // the connections are the parent's; descriptors are closed here, no more
  // Unread bytes would reset the connection when it is closed, and the goodbye might not arrive.
  if (!failure_ && !interrupted_) (void)attempt([this] { progress(std::chrono::milliseconds(0)); });
  const bool is_orderly =
      !failure_ && !interrupted_ && !has_given_up_ && std::ranges::all_of(peers_, [](const auto& entry) {
        const Peer& peer = entry.second;
        return peer.offered.empty() && peer.accepted.empty() && (!peer.out || peer.out->is_idle());
      });
  const auto now = std::chrono::steady_clock::now();
  for (auto& [rank, peer] : peers_) {
    if (is_orderly && peer.out && peer.out->is_open()) {
      peer.out->queue({FrameHead{.kind = FrameKind::goodbye}});
      peer.out->progress(now);
    }
    if (is_orderly && peer.in) peer.in->send_goodbye();
  }
  // A child of a fork has the same sockets: without this the others would not see the end before it ends, too.
  for (auto& [rank, peer] : peers_) {
    if (peer.out) peer.out->shut_down();
    if (peer.in) peer.in->shut_down();
  }
}

std::uint16_t Mesh::next_channel() {
  if (channels_ < std::numeric_limits<std::uint16_t>::max()) return ++channels_;
  throw Error(ErrorCode::bad_state, "no channel is left over TCP: too many communicators were duplicated");
}

OutgoingConnection& Mesh::connection_to(int rank) {
  Peer& peer = peers_[rank];
  if (!peer.out) {
    const Greeting greeting{kGreetingMagic, token_, static_cast<std::uint32_t>(rank_),
                            static_cast<std::uint32_t>(rank)};
    peer.out.emplace(addresses_.at(static_cast<std::size_t>(rank)), greeting, welcome_);
  }
  return *peer.out;
}

std::shared_ptr<MessageState> Mesh::send(int to, const Lane& lane, std::span<const std::byte> bytes) {
  auto message = std::make_shared<MessageState>();
  message->peer = to;
  message->source = bytes;
  OutgoingConnection& out = connection_to(to);
  Peer& peer = peers_[to];
  FrameHead head{.channel = lane.channel, .tag = lane.tag, .size = bytes.size()};
  if (bytes.size() <= kSmallMessageBytes && credit_needed(bytes.size()) <= peer.credit) {
    peer.credit -= credit_needed(bytes.size());
    out.queue({head, bytes, message});
  } else {
    head.kind = FrameKind::offer;
    head.id = ++peer.last_offer;
    peer.offered[head.id] = message;
    out.queue({head});
  }
  out.progress(std::chrono::steady_clock::now());
  return message;
}

std::shared_ptr<MessageState> Mesh::receive(int from, const Lane& lane, std::span<std::byte> target) {
  auto message = std::make_shared<MessageState>();
  message->peer = from;
  message->target = target;
  connection_to(from).progress(std::chrono::steady_clock::now());  // through which its end is seen
  auto arrival = inbox_.handle_arrival(lane, from);
  if (!arrival) {
    inbox_.expect(lane, message);
  } else if (arrival->offer) {
    --peers_[arrival->from].offers_kept;
    deliver_offer(message, *arrival);
  } else {
    deliver(*message, *std::move(arrival));
  }
  return message;
}

bool Mesh::is_complete(const MessageState& message) const {
  if (message.done) {
    if (message.failure) throw Error(*message.failure);
    return true;
  }
  if (interrupted_) throw Error(ErrorCode::timeout, "this communicator was interrupted");
  if (failure_) throw Error(*failure_);
  const auto peer = peers_.find(message.peer);
  if (peer != peers_.end() && peer->second.has_left) {
    throw Error(
        lost(compose("rank {} shut down its engine while rank {} was still waiting for it; call finalize on all ranks "
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
      has_given_up_ = true;
      return false;
    }
    progress(std::chrono::ceil<std::chrono::milliseconds>(wait_timer.slice()));  // events end it at once
  }
  return true;
}

void Mesh::interrupt() noexcept {
  interrupted_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.descriptor(), &one, sizeof one);  // fails only where it is raised already
}

void Mesh::leave(std::string_view why) noexcept {
  (void)attempt([&] { fail(rank_, std::string(why), std::string(utf8_truncated(why, kReasonBytesMax))); });
}

/// Sleeps until something happens on any connection, and carries on whatever can be.
void Mesh::progress(std::chrono::milliseconds at_most) {
  const auto now = std::chrono::steady_clock::now();
  polled_.clear();
  polled_.push_back({wake_.descriptor(), POLLIN, 0});
  acceptor_.add_poll_events(polled_, now);
  acceptor_polled_end_ = polled_.size();
  const auto add = [this](int descriptor, short events) {
    polled_.push_back({descriptor, events, 0});
    return polled_.size() - 1;
  };
  for (auto& [rank, peer] : peers_) {
    peer.in_polled = peer.in ? add(peer.in->descriptor(), POLLIN) : 0;
    peer.out_polled = peer.out && peer.out->descriptor() >= 0 ? add(peer.out->descriptor(), peer.out->events()) : 0;
  }
  const auto timeout = poll_timeout(at_most, now);
  // Interrupted, it has looked at nothing: another turn.
  if (::poll(polled_.data(), polled_.size(), static_cast<int>(timeout.count())) >= 0) {
    progress_connections(std::chrono::steady_clock::now());
  }
}

std::chrono::milliseconds Mesh::poll_timeout(std::chrono::milliseconds at_most, SocketTime now) const {
  constexpr std::chrono::milliseconds kUnknownSlice{100};
  if (acceptor_.needs_progress(now)) at_most = std::min(at_most, kUnknownSlice);
  for (const auto& [rank, peer] : peers_) {
    if (!peer.out) continue;
    if (const auto retry_at = peer.out->retry_at()) at_most = std::min(at_most, rounded_up(*retry_at - now));
  }
  return at_most;
}

void Mesh::progress_connections(SocketTime now) {
  bool is_knocked = acceptor_.needs_progress(now);
  for (std::size_t place = 1; place < acceptor_polled_end_; ++place) is_knocked = is_knocked || is_ready(place);
  if (is_knocked) admit_ranks(now);
  for (auto& [rank, peer] : peers_) {  // a map stays as it is while others are added
    if (peer.in && is_ready(peer.in_polled)) peer.in->read(*this);
    if (peer.out && (is_ready(peer.out_polled) || peer.out->retry_at())) peer.out->progress(now);
    if (failure_) return;
  }
  handle_closed_connections();
}

void Mesh::admit_ranks(SocketTime now) {
  for (ConnectionAcceptor::AcceptedRank& one : acceptor_.progress(now)) {
    Peer& peer = peers_[one.from];
    if (std::exchange(peer.was_admitted, true)) continue;  // whoever that is: the rank is here
    peer.in.emplace(std::move(one.socket), one.from);
  }
}

void Mesh::handle_closed_connections() {
  for (auto& [rank, peer] : peers_) {
    if (peer.in && peer.in->end()) {
      const CloseReason end = *peer.in->end();
      peer.in.reset();
      handle_close(rank, peer, end);
    }
    // The last frames of a rank that left may come later than the end of the other direction.
    const bool is_told_by_in = peer.in && peer.out && peer.out->end() && peer.out->end()->is_orderly;
    if (peer.out && peer.out->end() && !peer.has_left && !is_told_by_in) handle_close(rank, peer, *peer.out->end());
    if (failure_) return;
  }
}

void Mesh::handle_close(int rank, Peer& peer, const CloseReason& end) {
  if (end.is_orderly || peer.has_left) peer.has_left = true;
  else fail(rank, compose("rank {} {}", rank, end.why));
}

/// Other ranks may wait for ranks that wait for this one: they get the dead rank, and the reason, if that rank gave
/// one.
void Mesh::fail(int rank, const std::string& why, std::string reason) {
  failure_ = lost(why);
  if (reason_.empty()) reason_ = std::move(reason);
  const auto text = std::as_bytes(std::span(reason_));
  const auto now = std::chrono::steady_clock::now();
  for (auto& [other, peer] : peers_) {
    if (other == rank || !peer.out || !peer.out->is_open()) continue;
    peer.out->queue_answer({.kind = FrameKind::lost, .size = text.size(), .id = static_cast<std::uint64_t>(rank)},
                           text);
    peer.out->progress(now);
  }
}

void Mesh::credit(int from, std::uint64_t bytes) {
  Peer& peer = peers_[from];
  peer.received += bytes;
  if (peer.received < kCreditBytes / 2) return;
  peer.uncredited_bytes -= peer.received;
  OutgoingConnection& out = connection_to(from);
  out.queue_answer({.kind = FrameKind::credit, .size = std::exchange(peer.received, 0)});
  out.progress(std::chrono::steady_clock::now());
}

void Mesh::deliver(MessageState& receive, Arrival arrival) {
  receive.done = true;
  if (arrival.bytes.size() > receive.target.size()) {
    receive.failure = too_large(arrival, receive.target.size());
  } else if (!arrival.bytes.empty()) {
    std::memcpy(receive.target.data(), arrival.bytes.data(), arrival.bytes.size());
  }
  credit(arrival.from, credit_needed(arrival.bytes.size()));
}

void Mesh::deliver_offer(const std::shared_ptr<MessageState>& receive, const Arrival& arrival) {
  FrameHead answer{.kind = FrameKind::accept, .id = arrival.offer->id};
  if (arrival.size() > receive->target.size()) {
    receive->done = true;
    receive->failure = too_large(arrival, receive->target.size());
    answer.kind = FrameKind::refuse;
  } else {
    peers_[arrival.from].accepted[answer.id] = {receive, arrival.size()};
  }
  OutgoingConnection& out = connection_to(arrival.from);
  out.queue_answer(answer);
  out.progress(std::chrono::steady_clock::now());
}

}  // namespace kedge::comm
