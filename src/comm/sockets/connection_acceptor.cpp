#include "comm/sockets/connection_acceptor.hpp"

#include <cstring>
#include <utility>

namespace kedge::comm {
namespace {

constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(Socket listener, int rank, int size, const Id128& token, const Id128& welcome)
    : listener_(std::move(listener)), rank_(rank), size_(size), token_(token), welcome_token_(welcome) {}

void ConnectionAcceptor::add_poll_events(std::vector<::pollfd>& polled, SocketTime now) const {
  if (now >= paused_until_) polled.push_back({listener_.descriptor(), POLLIN, 0});
  for (const UnidentifiedConnection& unknown : unidentified_)
    polled.push_back({unknown.socket.descriptor(), POLLIN, 0});
}

std::vector<ConnectionAcceptor::AcceptedRank> ConnectionAcceptor::accept_ranks(SocketTime now) {
  accept_connections(now);
  std::vector<AcceptedRank> admitted;
  for (auto unknown = unidentified_.begin(); unknown != unidentified_.end();) {
    const Handshake reading = advance_handshake(*unknown);
    if (reading == Handshake::admitted) {
      Greeting greeting;
      std::memcpy(&greeting, unknown->greeting.data(), sizeof greeting);
      admitted.push_back({std::move(unknown->socket), static_cast<int>(greeting.from)});
    }
    const bool stays = reading == Handshake::more && now - unknown->accepted_at < kGreetingTimeout;
    unknown = stays ? std::next(unknown) : unidentified_.erase(unknown);
  }
  while (unidentified_.size() > kUnidentifiedMax) unidentified_.pop_front();
  return admitted;
}

void ConnectionAcceptor::accept_connections(SocketTime now) {
  if (now < paused_until_) return;
  for (std::size_t turn = 0; turn < kUnidentifiedMax; ++turn) {
    AcceptedConnection accepted = accept_connection(listener_);
    if (accepted.error != 0)
      paused_until_ = now + kPauseWithoutDescriptors;  // the error would be reported again at once
    if (!accepted.socket.is_open()) return;
    unidentified_.push_back({std::move(accepted.socket), now});
  }
}

ConnectionAcceptor::Handshake ConnectionAcceptor::advance_handshake(UnidentifiedConnection& unknown) const {
  const TransferResult moved =
      receive_some(unknown.socket, std::span(unknown.greeting).subspan(unknown.received_bytes));
  if (moved.has_ended) return Handshake::refused;
  unknown.received_bytes += moved.bytes;
  if (unknown.received_bytes < sizeof(Greeting)) return Handshake::more;
  Greeting greeting;
  std::memcpy(&greeting, unknown.greeting.data(), sizeof greeting);
  if (!is_from_job(greeting)) return Handshake::refused;
  Welcome welcome;
  welcome.token = welcome_token_;
  const TransferResult sent = send_some(unknown.socket, std::as_bytes(std::span(&welcome, 1)), {});
  return sent.bytes == sizeof welcome ? Handshake::admitted : Handshake::refused;
}

bool ConnectionAcceptor::is_from_job(const Greeting& greeting) const {
  const bool has_token = equal_in_constant_time(greeting.token, token_);
  return has_token && greeting.magic == kGreetingMagic && greeting.to == static_cast<std::uint32_t>(rank_) &&
         greeting.from < static_cast<std::uint32_t>(size_) && greeting.from != greeting.to;
}

}  // namespace kedge::comm
