// Handling of frames that arrive. Frames are not trusted, whoever sent them: no frame makes this rank reserve more
// memory than the limits in frame.hpp, or write where nobody asked for it.
#include <utility>

#include "base/text.hpp"
#include "comm/sockets/mesh.hpp"

namespace kedge::comm {

FrameReceiver::Fault Mesh::check_message(int from, const FrameHead& head) {
  Peer& peer = peers_[from];
  if (peer.uncredited_bytes + credit_needed(head.size) > kCreditBytes) return "more small messages than were allowed";
  peer.uncredited_bytes += credit_needed(head.size);
  return std::nullopt;
}

std::optional<std::span<std::byte>> Mesh::payload_target(int from, const FrameHead& head) {
  const Peer& peer = peers_[from];
  const auto found = peer.accepted_receives.find(head.id);
  if (found == peer.accepted_receives.end() || found->second.size != head.size) return std::nullopt;
  return found->second.receive->target.first(head.size);
}

FrameReceiver::Fault Mesh::handle_frame(int from, const FrameHead& head, std::vector<std::byte> bytes) {
  switch (head.kind) {
    case FrameKind::message: {
      ArrivedMessage arrival{from, std::move(bytes), std::nullopt};
      const Lane lane{head.channel, head.tag};
      if (const auto receive = inbox_.take_receive(lane, from)) deliver_message(*receive, std::move(arrival));
      else inbox_.add_message(lane, std::move(arrival));
      return std::nullopt;
    }
    case FrameKind::offer: return handle_offer(from, head);
    case FrameKind::accept:
    case FrameKind::refuse: return handle_answer(from, head);
    case FrameKind::data: return handle_data(from, head);
    case FrameKind::credit: return handle_credit(from, head);
    case FrameKind::lost: return handle_lost(from, head, bytes);
    case FrameKind::goodbye: break;  // the connection's own
  }
  return std::nullopt;
}

FrameReceiver::Fault Mesh::handle_lost(int from, const FrameHead& head, const std::vector<std::byte>& text) {
  if (head.id >= static_cast<std::uint64_t>(size())) return "a rank that does not exist";
  const auto rank = static_cast<int>(head.id);
  if (text.empty()) {
    fail_mesh(rank, compose("rank {} has died (reported by rank {}); start the job again", rank, from));
  } else {
    std::string reason(reinterpret_cast<const char*>(text.data()), text.size());
    fail_mesh(rank, reason, reason);
  }
  return std::nullopt;
}

FrameReceiver::Fault Mesh::handle_offer(int from, const FrameHead& head) {
  Peer& peer = peers_[from];
  if (head.id != peer.last_offer_seen + 1) return "offers out of order";
  peer.last_offer_seen = head.id;
  const ArrivedMessage arrival{from, {}, ArrivedMessage::Offer{head.id, head.size}};
  const Lane lane{head.channel, head.tag};
  if (const auto receive = inbox_.take_receive(lane, from)) {
    deliver_offer(receive, arrival);
    return std::nullopt;
  }
  if (++peer.unexpected_offer_count > kOffersMax) return "too many offers";
  inbox_.add_message(lane, arrival);
  return std::nullopt;
}

FrameReceiver::Fault Mesh::handle_answer(int from, const FrameHead& head) {
  Peer& peer = peers_[from];
  const auto found = peer.offered_sends.find(head.id);
  if (found == peer.offered_sends.end()) return "an answer to nothing";
  auto message = std::move(found->second);
  peer.offered_sends.erase(found);
  if (head.kind == FrameKind::refuse) {
    message->is_done = true;
    return std::nullopt;
  }
  const auto source = message->source;
  connection_to(from).queue_frame(
      {{.kind = FrameKind::data, .size = source.size(), .id = head.id}, source, std::move(message)});
  return std::nullopt;
}

FrameReceiver::Fault Mesh::handle_data(int from, const FrameHead& head) {
  auto& accepted = peers_[from].accepted_receives;
  const auto found = accepted.find(head.id);
  found->second.receive->is_done = true;  // target_of has found it
  accepted.erase(found);
  return std::nullopt;
}

FrameReceiver::Fault Mesh::handle_credit(int from, const FrameHead& head) {
  Peer& peer = peers_[from];
  if (peer.credit_bytes + head.size > kCreditBytes) return "credit for data that was not sent";
  peer.credit_bytes += head.size;
  return std::nullopt;
}

}  // namespace kedge::comm
