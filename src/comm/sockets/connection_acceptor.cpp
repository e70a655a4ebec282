#include "comm/sockets/connection_acceptor.hpp"

#include <cstring>
#include <utility>

namespace kedge::comm {
namespace {

constexpr std::chrono::milliseconds kRest{100};

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(Socket listener, int rank, int size, const Id128& token, const Id128& welcome)
    : listener_(std::move(listener)), rank_(rank), size_(size), token_(token), welcome_(welcome) {}

void ConnectionAcceptor::add_poll_events(std::vector<::pollfd>& polled, SocketTime now) const {
  if (now >= rests_until_) polled.push_back({listener_.descriptor(), POLLIN, 0});
  for (const UnidentifiedConnection& unknown : unknown_) polled.push_back({unknown.socket.descriptor(), POLLIN, 0});
}

std::vector<ConnectionAcceptor::AcceptedRank> ConnectionAcceptor::progress(SocketTime now) {
  accept(now);
  std::vector<AcceptedRank> admitted;
  for (auto unknown = unknown_.begin(); unknown != unknown_.end();) {
    const Reading reading = read(*unknown);
    if (reading == Reading::admitted) {
      Greeting greeting;
      std::memcpy(&greeting, unknown->greeting.data(), sizeof greeting);
      admitted.push_back({std::move(unknown->socket), static_cast<int>(greeting.from)});
    }
    const bool stays = reading == Reading::more && now - unknown->since < kGreetingLimit;
    unknown = stays ? std::next(unknown) : unknown_.erase(unknown);
  }
  while (unknown_.size() > kUnknownMax) unknown_.pop_front();
  return admitted;
}

void ConnectionAcceptor::accept(SocketTime now) {
  if (now < rests_until_) return;
  for (std::size_t turn = 0; turn < kUnknownMax; ++turn) {
    Accepted accepted = accept_one(listener_);
    if (accepted.error != 0) rests_until_ = now + kRest;  // the error would be reported again at once
    if (!accepted.socket.is_open()) return;
    unknown_.push_back({std::move(accepted.socket), now});
  }
}

ConnectionAcceptor::Reading ConnectionAcceptor::read(UnidentifiedConnection& unknown) const {
  const TransferResult moved = receive_some(unknown.socket, std::span(unknown.greeting).subspan(unknown.bytes));
  if (moved.ended) return Reading::refused;
  unknown.bytes += moved.bytes;
  if (unknown.bytes < sizeof(Greeting)) return Reading::more;
  Greeting greeting;
  std::memcpy(&greeting, unknown.greeting.data(), sizeof greeting);
  if (!is_from_job(greeting)) return Reading::refused;
  Welcome welcome;
  welcome.token = welcome_;
  const TransferResult sent = send_some(unknown.socket, std::as_bytes(std::span(&welcome, 1)), {});
  return sent.bytes == sizeof welcome ? Reading::admitted : Reading::refused;
}

bool ConnectionAcceptor::is_from_job(const Greeting& greeting) const {
  const bool has_token = same(greeting.token, token_);
  return has_token && greeting.magic == kGreetingMagic && greeting.to == static_cast<std::uint32_t>(rank_) &&
         greeting.from < static_cast<std::uint32_t>(size_) && greeting.from != greeting.to;
}

}  // namespace kedge::comm
