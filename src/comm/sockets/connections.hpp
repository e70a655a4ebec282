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

/// How a connection came to its end.
struct CloseReason {
  bool is_orderly = false;  ///< the other side said so before
  std::string why;          ///< after "rank N "
};

/// A frame on its way out.
struct QueuedFrame {
  FrameHead head;
  std::span<const std::byte> payload = {};
  std::shared_ptr<MessageState> sent = {};  ///< done as soon as the system has all of it
};

/// To another rank. Connects by itself, again if it was not welcomed: the other side gives up on those that are slow to
/// greet, as a rank that does something else in between may be.
class OutgoingConnection {
 public:
  OutgoingConnection(NetworkAddress address, const Greeting& greeting, const Id128& welcome);

  void queue(QueuedFrame frame) { frames_.push_back(std::move(frame)); }
  /// Before all that has not begun: nobody waits for an answer behind large messages.
  void queue_answer(const FrameHead& head, std::span<const std::byte> payload = {}) {
    answers_.push_back({head, payload});
  }
  /// Connects and sends as far as possible without waiting.
  void progress(SocketTime now);

  [[nodiscard]] int descriptor() const noexcept { return socket_.descriptor(); }
  [[nodiscard]] short events() const noexcept;  ///< what to poll for
  /// When it is to be gone on with, without an event.
  [[nodiscard]] std::optional<SocketTime> retry_at() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  /// Nothing waits to be sent.
  [[nodiscard]] bool is_idle() const noexcept { return frames_.empty() && answers_.empty(); }
  [[nodiscard]] const std::optional<CloseReason>& end() const noexcept { return end_; }
  void shut_down() const noexcept { socket_.shut_down(); }

 private:
  enum class State : std::uint8_t { apart, connecting, greeting, welcomed, open, over };

  void connect();
  void try_again(SocketTime now);
  void send_greeting(SocketTime now);
  void read_welcome(SocketTime now);
  void watch();
  void send();
  [[nodiscard]] std::deque<QueuedFrame>& current() noexcept;
  void end(std::string why, bool is_orderly = false);

  NetworkAddress address_;
  Greeting greeting_;
  Id128 welcome_token_;
  Socket socket_;
  State state_ = State::apart;
  SocketTime retry_at_{};
  std::chrono::milliseconds pause_;
  std::size_t greeted_bytes_ = 0;
  std::array<std::byte, sizeof(Welcome)> welcome_{};
  std::size_t welcome_bytes_ = 0;
  std::deque<QueuedFrame> answers_;
  std::deque<QueuedFrame> frames_;
  bool answers_first_ = false;  ///< which of the two the half-sent frame is in
  std::size_t sent_bytes_ = 0;  ///< of the frame that is being sent
  bool said_goodbye_ = false;   ///< the other side
  std::optional<CloseReason> end_;
};

/// Who gets the frames that come. Calls return what is wrong with a frame, or nothing.
class FrameReceiver {
 public:
  using Fault = std::optional<std::string_view>;

  FrameReceiver() = default;
  FrameReceiver(const FrameReceiver&) = delete;
  FrameReceiver& operator=(const FrameReceiver&) = delete;
  virtual ~FrameReceiver() = default;
  /// The head of a small message: whether it may come.
  [[nodiscard]] virtual Fault admit(int from, const FrameHead& head) = 0;
  /// The head of data: where they go.
  [[nodiscard]] virtual std::optional<std::span<std::byte>> target_of(int from, const FrameHead& head) = 0;
  /// All of a frame has come; `bytes` are those of a small message, or of a reason.
  [[nodiscard]] virtual Fault take(int from, const FrameHead& head, std::vector<std::byte> bytes) = 0;
};

/// From another rank, which has shown who it is.
class IncomingConnection {
 public:
  IncomingConnection(Socket socket, int from) : socket_(std::move(socket)), from_(from) {}

  /// Reads as far as possible without waiting, up to a bound.
  void read(FrameReceiver& receiver);
  /// Says that it is closed on purpose.
  void send_goodbye() const noexcept;

  [[nodiscard]] int descriptor() const noexcept { return socket_.descriptor(); }
  [[nodiscard]] const std::optional<CloseReason>& end() const noexcept { return end_; }
  void shut_down() const noexcept { socket_.shut_down(); }

 private:
  /// Prepares for the payload that comes next, or closes on an error.
  void begin_payload(FrameReceiver& receiver);
  void complete(FrameReceiver& receiver);
  void refuse(std::string_view fault);

  Socket socket_;
  int from_;
  FrameHead head_;
  std::size_t head_bytes_ = 0;
  std::vector<std::byte> bytes_;
  std::span<std::byte> rest_;  ///< of the payload, where it goes
  bool said_goodbye_ = false;
  std::optional<CloseReason> end_;
};

}  // namespace kedge::comm
