// The two connections between this rank and another one: one for each direction, made by the rank that sends on it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/sockets/frame.hpp"
#include "comm/sockets/inbox.hpp"
#include "comm/sockets/network_address.hpp"
#include "comm/sockets/socket.hpp"

namespace kedge::comm {

using SocketTime = std::chrono::steady_clock::time_point;

/// Why a connection was closed.
struct CloseReason {
  bool is_orderly = false;  ///< the other side said goodbye before
  std::string reason;       ///< continues "rank N "
};

/// A frame to be sent.
struct QueuedFrame {
  FrameHead head;
  std::span<const std::byte> payload = {};
  std::shared_ptr<MessageState> sent = {};  ///< done as soon as the system has all bytes of the frame
};

/// The connection to another rank. Connects by itself, and again if it was not welcomed: the other side drops
/// connections that are slow to greet, as those of a busy rank may be.
class OutgoingConnection {
 public:
  OutgoingConnection(NetworkAddress address, const Greeting& greeting, const Id128& welcome);

  void queue_frame(QueuedFrame frame) { frames_.push_back(std::move(frame)); }
  /// Queues an answer before all frames that have not begun: no rank waits for an answer behind large messages.
  void queue_answer(const FrameHead& head, std::span<const std::byte> payload = {}) {
    answers_.push_back({head, payload});
  }
  /// Connects and sends as far as possible without waiting.
  void progress(SocketTime now);

  [[nodiscard]] int descriptor() const noexcept { return socket_.descriptor(); }
  [[nodiscard]] short poll_events() const noexcept;  ///< what to poll for
  /// Returns when it needs progress() without an event, if at all.
  [[nodiscard]] std::optional<SocketTime> retry_at() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  /// Whether nothing waits to be sent.
  [[nodiscard]] bool is_idle() const noexcept { return frames_.empty() && answers_.empty(); }
  [[nodiscard]] const std::optional<CloseReason>& end() const noexcept { return end_; }
  void shut_down() const noexcept { socket_.shut_down(); }

 private:
  enum class State : std::uint8_t { disconnected, connecting, greeting, welcomed, open, closed };

  void connect();
  void retry_later(SocketTime now);
  void send_greeting(SocketTime now);
  void read_welcome(SocketTime now);
  void read_goodbye();
  void send_frames();
  [[nodiscard]] std::deque<QueuedFrame>& current_queue() noexcept;
  void end(std::string why, bool is_orderly = false);

  NetworkAddress address_;
  Greeting greeting_;
  Id128 welcome_token_;
  Socket socket_;
  State state_ = State::disconnected;
  SocketTime retry_at_{};
  std::chrono::milliseconds retry_delay_;
  std::size_t sent_greeting_bytes_ = 0;
  std::array<std::byte, sizeof(Welcome)> welcome_{};
  std::size_t received_welcome_bytes_ = 0;
  std::deque<QueuedFrame> answers_;
  std::deque<QueuedFrame> frames_;
  bool is_sending_answer_ = false;  ///< whether the half-sent frame is an answer
  std::size_t sent_bytes_ = 0;      ///< sent bytes of the current frame
  bool has_goodbye_ = false;        ///< the other side
  std::optional<CloseReason> end_;
};

/// Receives the frames of a connection. Calls return what is wrong with a frame, or nothing.
class FrameReceiver {
 public:
  using Fault = std::optional<std::string_view>;

  FrameReceiver() = default;
  FrameReceiver(const FrameReceiver&) = delete;
  FrameReceiver& operator=(const FrameReceiver&) = delete;
  virtual ~FrameReceiver() = default;
  /// Checks the head of a small message.
  [[nodiscard]] virtual Fault check_message(int from, const FrameHead& head) = 0;
  /// Returns the memory for a frame of data, given its head.
  [[nodiscard]] virtual std::optional<std::span<std::byte>> payload_target(int from, const FrameHead& head) = 0;
  /// Handles a complete frame; `bytes` are those of a small message, or of a reason.
  [[nodiscard]] virtual Fault handle_frame(int from, const FrameHead& head, std::vector<std::byte> bytes) = 0;
};

/// The connection from another rank, which has proved its identity.
class IncomingConnection {
 public:
  IncomingConnection(Socket socket, int from) : socket_(std::move(socket)), from_(from) {}

  /// Reads as far as possible without waiting, up to a limit.
  void read_frames(FrameReceiver& receiver);
  /// Says that the connection will be closed on purpose.
  void send_goodbye() const noexcept;

  [[nodiscard]] int descriptor() const noexcept { return socket_.descriptor(); }
  [[nodiscard]] const std::optional<CloseReason>& end() const noexcept { return end_; }
  void shut_down() const noexcept { socket_.shut_down(); }

 private:
  /// Prepares for the payload that comes next, or closes the connection on an error.
  void begin_payload(FrameReceiver& receiver);
  void complete_frame(FrameReceiver& receiver);
  void close_with_fault(std::string_view fault);

  Socket socket_;
  int from_;
  FrameHead head_;
  std::size_t head_bytes_ = 0;
  std::vector<std::byte> bytes_;
  std::span<std::byte> remaining_payload_;  ///< memory for the payload's remaining bytes
  bool has_goodbye_ = false;
  std::optional<CloseReason> end_;
};

}  // namespace kedge::comm
