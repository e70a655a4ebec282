// The connections of this rank to the others of the job, and the messages on them.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/sockets/connection_acceptor.hpp"
#include "comm/sockets/connections.hpp"
#include "comm/sockets/frame.hpp"
#include "comm/sockets/inbox.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// The addresses and tokens with which a rank reaches the others.
struct MeshPlan {
  int rank = 0;
  std::vector<NetworkAddress> addresses;  ///< addresses of all ranks
  Id128 token;                            ///< the job's token that the connecting rank sends
  Id128 welcome_token;                    ///< the job's token that the accepting rank sends
  Socket listener;                        ///< listens at this rank's address
};

/// Connections are made when a message needs them. There is no thread: calls that test or wait for a message make
/// progress on all of them. For one thread at a time, except interrupt(). A rank that dies fails the whole mesh, in all
/// ranks that are connected with each other; one that ends its part fails the ranks that still wait for it.
class Mesh final : private FrameReceiver {
 public:
  /// Throws Error{io} if the system has no descriptor for it.
  explicit Mesh(MeshPlan plan);
  /// Says goodbye to the others, unless a message is in progress. Does nothing in a forked child.
  ~Mesh() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(addresses_.size()); }
  /// Returns the number of a new channel; channels are numbered alike on all ranks. Throws Error{bad_state} if there
  /// are none left.
  [[nodiscard]] std::uint16_t next_channel();

  /// Sends from `lane.channel` to `lane.channel`, as Transport::send does.
  [[nodiscard]] std::shared_ptr<MessageState> send(int to, const Lane& lane, std::span<const std::byte> bytes);
  [[nodiscard]] std::shared_ptr<MessageState> receive(int from, const Lane& lane, std::span<std::byte> target);
  /// Tests as Transport::Transfer does. Throws Error{timeout} after interrupt().
  [[nodiscard]] bool test(const MessageState& message);
  [[nodiscard]] bool wait(const MessageState& message, Deadline deadline);
  /// Ends waits, now and later. Callable from any thread.
  void interrupt() noexcept;
  /// Fails the waits of the other ranks, as Transport::leave does. Local.
  void leave(std::string_view why) noexcept;

 private:
  /// A receive of an accepted message.
  struct AcceptedReceive {
    std::shared_ptr<MessageState> receive;
    std::uint64_t size = 0;
  };
  /// Another rank and the messages to and from it.
  struct Peer {
    std::optional<OutgoingConnection> outgoing;
    std::optional<IncomingConnection> incoming;
    std::size_t outgoing_poll_index = 0;  ///< index in polled_; 0 if it is not polled
    std::size_t incoming_poll_index = 0;
    bool was_admitted = false;
    bool has_left = false;
    std::uint64_t credit_bytes = kCreditBytes;                             ///< bytes that may be sent at once
    std::uint64_t last_offer = 0;                                          ///< number of this rank's last offer
    std::map<std::uint64_t, std::shared_ptr<MessageState>> offered_sends;  ///< sends by the numbers of their offers
    std::uint64_t uncredited_bytes = 0;        ///< bytes of small messages that came and were not credited yet
    std::uint64_t received_bytes = 0;          ///< bytes of small messages that were received since the last credit
    std::uint64_t last_offer_seen = 0;         ///< number of the other rank's last offer
    std::uint64_t unexpected_offer_count = 0;  ///< number of the other rank's offers without a receive
    std::map<std::uint64_t, AcceptedReceive> accepted_receives;  ///< receives by the numbers of the accepted offers
  };

  [[nodiscard]] bool is_complete(const MessageState& message) const;
  void progress(std::chrono::milliseconds wait_max);
  [[nodiscard]] std::chrono::milliseconds poll_timeout(std::chrono::milliseconds wait_max, SocketTime now) const;
  [[nodiscard]] bool is_ready(std::size_t poll_index) const {
    return poll_index != 0 && poll_descriptors_[poll_index].revents != 0;
  }
  void progress_connections(SocketTime now);
  void admit_ranks(SocketTime now);
  void handle_closed_connections();
  void handle_close(int rank, Peer& peer, const CloseReason& end);
  void fail_mesh(int rank, const std::string& why, std::string reason = {});
  [[nodiscard]] OutgoingConnection& connection_to(int rank);
  void grant_credit(int from, std::uint64_t bytes);
  void deliver_message(MessageState& receive, ArrivedMessage arrival);
  void deliver_offer(const std::shared_ptr<MessageState>& receive, const ArrivedMessage& arrival);

  [[nodiscard]] Fault check_message(int from, const FrameHead& head) override;
  [[nodiscard]] std::optional<std::span<std::byte>> payload_target(int from, const FrameHead& head) override;
  [[nodiscard]] Fault handle_frame(int from, const FrameHead& head, std::vector<std::byte> bytes) override;
  [[nodiscard]] Fault handle_lost(int from, const FrameHead& head, const std::vector<std::byte>& text);
  [[nodiscard]] Fault handle_offer(int from, const FrameHead& head);
  [[nodiscard]] Fault handle_answer(int from, const FrameHead& head);
  [[nodiscard]] Fault handle_data(int from, const FrameHead& head);
  [[nodiscard]] Fault handle_credit(int from, const FrameHead& head);

  int rank_;
  std::vector<NetworkAddress> addresses_;
  Id128 token_;
  Id128 welcome_token_;
  ::pid_t process_id_;
  ConnectionAcceptor acceptor_;
  Socket wake_event_;  ///< an eventfd
  std::uint16_t channel_count_ = 0;
  std::string failure_reason_;  ///< text of a failed rank, which the connections send from here
  std::map<int, Peer> peers_;
  Inbox inbox_;
  std::optional<Failure> failure_;
  bool has_abandoned_message_ = false;  ///< a wait timed out, so this rank does not leave in order
  std::atomic<bool> interrupted_ = false;
  std::vector<::pollfd> poll_descriptors_;  ///< first the eventfd, then the acceptor's, then the connections
  std::size_t acceptor_poll_end_ = 0;       ///< first index after the acceptor's
};

}  // namespace kedge::comm
