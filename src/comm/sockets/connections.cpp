#include "comm/sockets/connections.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace kedge::comm {
namespace {

constexpr std::chrono::milliseconds kFirstRetryDelay{10};
constexpr std::chrono::milliseconds kRetryDelayMax{500};
/// Most bytes read from one connection before the others have their turn.
constexpr std::size_t kBytesPerRead = std::size_t{4} << 20U;

std::string error_text(int error) { return std::generic_category().message(error); }

std::string close_text(const TransferResult& moved, std::string_view where = {}) {
  const std::string how =
      moved.error == 0 ? "closed its connection" : compose("lost its connection ({})", error_text(moved.error));
  return compose(
      "{}{}: its process has died, or its engine was destroyed while work was under way; start the job again", how,
      where);
}

std::string unreachable_text(const NetworkAddress& address, const std::string& error) {
  return compose(
      "cannot be reached at {} ({}): its process has died, or a firewall blocks the port; start the job again, open "
      "the ports, or set pipeline.interface",
      to_string(address), error);
}

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

OutgoingConnection::OutgoingConnection(NetworkAddress address, const Greeting& greeting, const Id128& welcome)
    : address_(std::move(address)), greeting_(greeting), welcome_token_(welcome), retry_delay_(kFirstRetryDelay) {}

short OutgoingConnection::poll_events() const noexcept {
  const bool writes = state_ == State::connecting || state_ == State::greeting || (is_open() && !is_idle());
  return static_cast<short>(POLLIN | (writes ? POLLOUT : 0));
}

std::optional<SocketTime> OutgoingConnection::retry_at() const noexcept {
  return state_ == State::disconnected ? std::optional(retry_at_) : std::nullopt;
}

void OutgoingConnection::progress(SocketTime now) {
  if (state_ == State::disconnected && now >= retry_at_) connect();
  if (state_ == State::connecting || state_ == State::greeting) send_greeting(now);
  if (state_ == State::welcomed) read_welcome(now);
  if (state_ == State::open) read_goodbye();
  if (state_ == State::open) send_frames();
}

void OutgoingConnection::connect() {
  try {
    socket_ = connect_to(address_);
    state_ = State::connecting;
    sent_greeting_bytes_ = 0;
    received_welcome_bytes_ = 0;
  } catch (const std::system_error& error) {
    end(unreachable_text(address_, error.code().message()));
  }
}

void OutgoingConnection::retry_later(SocketTime now) {
  socket_ = Socket();
  state_ = State::disconnected;
  retry_at_ = now + retry_delay_;
  retry_delay_ = std::min(2 * retry_delay_, kRetryDelayMax);
}

void OutgoingConnection::send_greeting(SocketTime now) {
  if (state_ == State::connecting) {
    ::pollfd ready{socket_.descriptor(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1) return;
    if (const int error = pending_error(socket_); error != 0) return end(unreachable_text(address_, error_text(error)));
    state_ = State::greeting;
  }
  const TransferResult moved = send_some(socket_, bytes_of(greeting_).subspan(sent_greeting_bytes_), {});
  if (moved.has_ended) return retry_later(now);
  sent_greeting_bytes_ += moved.bytes;
  if (sent_greeting_bytes_ == sizeof greeting_) state_ = State::welcomed;
}

/// Reads the welcome. Before it nothing is sent: another process may listen where that rank did.
void OutgoingConnection::read_welcome(SocketTime now) {
  const TransferResult moved = receive_some(socket_, std::span(welcome_).subspan(received_welcome_bytes_));
  if (moved.has_ended) return retry_later(now);
  received_welcome_bytes_ += moved.bytes;
  if (received_welcome_bytes_ < sizeof(Welcome)) return;
  Welcome welcome;
  std::memcpy(&welcome, welcome_.data(), sizeof welcome);
  if (welcome.magic == kWelcomeMagic && equal_in_constant_time(welcome.token, welcome_token_)) state_ = State::open;
  else end(compose("has died: another program now listens at {}; start the job again", to_string(address_)));
}

/// Reads the goodbye, the only byte that the other side sends, or the end of the connection.
void OutgoingConnection::read_goodbye() {
  std::array<std::byte, 1> one{};
  const TransferResult moved = receive_some(socket_, one);
  if (moved.bytes == 1) has_goodbye_ = one.front() == kGoodbye;
  if (moved.has_ended) end(close_text(moved), has_goodbye_);
}

std::deque<QueuedFrame>& OutgoingConnection::current_queue() noexcept {
  if (sent_bytes_ == 0) is_sending_answer_ = !answers_.empty();
  return is_sending_answer_ ? answers_ : frames_;
}

void OutgoingConnection::send_frames() {
  while (!is_idle()) {
    std::deque<QueuedFrame>& frames = current_queue();
    const QueuedFrame& frame = frames.front();
    const std::size_t of_head = std::min(sent_bytes_, sizeof(FrameHead));
    const TransferResult moved =
        send_some(socket_, bytes_of(frame.head).subspan(of_head), frame.payload.subspan(sent_bytes_ - of_head));
    if (moved.has_ended) return end(close_text(moved), has_goodbye_);
    if (moved.bytes == 0) return;
    sent_bytes_ += moved.bytes;
    if (sent_bytes_ < sizeof(FrameHead) + frame.payload.size()) continue;
    if (frame.sent) frame.sent->is_done = true;
    frames.pop_front();
    sent_bytes_ = 0;
  }
}

void OutgoingConnection::end(std::string why, bool is_orderly) {
  socket_ = Socket();
  state_ = State::closed;
  end_ = CloseReason{is_orderly, std::move(why)};
}

void IncomingConnection::read_frames(FrameReceiver& receiver) {
  for (std::size_t turn = 0; turn < kBytesPerRead && !end_;) {
    const bool in_head = head_bytes_ < sizeof head_;
    const auto target =
        in_head ? std::as_writable_bytes(std::span(&head_, 1)).subspan(head_bytes_) : remaining_payload_;
    const TransferResult moved = receive_some(socket_, target);
    if (moved.has_ended) {
      const bool is_whole = head_bytes_ == 0;
      end_ = CloseReason{has_goodbye_ && is_whole, close_text(moved, is_whole ? "" : " in the middle of a message")};
    }
    if (moved.bytes == 0) return;
    turn += moved.bytes;
    if (in_head) {
      head_bytes_ += moved.bytes;
      if (head_bytes_ == sizeof head_) begin_payload(receiver);
    } else {
      remaining_payload_ = remaining_payload_.subspan(moved.bytes);
    }
    if (head_bytes_ == sizeof head_ && remaining_payload_.empty() && !end_) complete_frame(receiver);
  }
}

void IncomingConnection::begin_payload(FrameReceiver& receiver) {
  auto fault = check_frame_head(head_);
  if (!fault && head_.kind == FrameKind::message) fault = receiver.check_message(from_, head_);
  if (!fault && (head_.kind == FrameKind::message || head_.kind == FrameKind::lost)) {
    bytes_.resize(head_.size);
    remaining_payload_ = bytes_;
  }
  if (!fault && head_.kind == FrameKind::data) {
    const auto target = receiver.payload_target(from_, head_);
    if (target) remaining_payload_ = *target;
    else fault = "unexpected data";
  }
  if (fault) close_with_fault(*fault);
}

void IncomingConnection::complete_frame(FrameReceiver& receiver) {
  head_bytes_ = 0;
  if (head_.kind == FrameKind::goodbye) {
    has_goodbye_ = true;
    return;
  }
  if (const auto fault = receiver.handle_frame(from_, head_, std::exchange(bytes_, {}))) close_with_fault(*fault);
}

void IncomingConnection::close_with_fault(std::string_view fault) {
  end_ = CloseReason{false, compose("sent malformed data ({}); check the network, and start the job again", fault)};
}

void IncomingConnection::send_goodbye() const noexcept { (void)send_some(socket_, std::span(&kGoodbye, 1), {}); }

}  // namespace kedge::comm
