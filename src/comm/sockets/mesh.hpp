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

/// All that a rank needs to reach the others.
struct MeshPlan {
  int rank = 0;
  std::vector<NetworkAddress> addresses;  ///< by rank
  Id128 token;                            ///< of the job: a rank shows it when it connects
  Id128 welcome;                          ///< another: a rank shows it when it is connected to
  Socket listener;                        ///< at this rank's address
};

/// Connections are made when a message needs them. There is no thread: whoever tests or waits for a message carries all
/// of them on. Called by one thread at a time, but for interrupt(). A rank that dies fails the whole mesh, in all ranks
/// that are connected with each other; one that ends its part fails those who still wait for it.
class Mesh final : private FrameReceiver {
 public:
  /// Throws Error{io} if the system has no descriptor for it.
  explicit Mesh(MeshPlan plan);
  /// Tells the others that this rank ends its part, unless something is under way. Nothing of this in the child of a
  /// fork.
  ~Mesh() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(addresses_.size()); }
  /// The number of a channel: the nth that a rank asks for is the others' nth. Throws Error{bad_state} if there are
  /// none left.
  [[nodiscard]] std::uint16_t next_channel();

  /// Messages from `lane.channel` to `lane.channel`; as Transport::send and receive.
  [[nodiscard]] std::shared_ptr<MessageState> send(int to, const Lane& lane, std::span<const std::byte> bytes);
  [[nodiscard]] std::shared_ptr<MessageState> receive(int from, const Lane& lane, std::span<std::byte> target);
  /// Tests and waits as Transport::Transfer does. Error{timeout} after interrupt().
  [[nodiscard]] bool test(const MessageState& message);
  [[nodiscard]] bool wait(const MessageState& message, Deadline deadline);
  /// From any thread: ends waits, now and later.
  void interrupt() noexcept;
  /// Local. Fails the waits of the other ranks, as Transport::leave does.
  void leave(std::string_view why) noexcept;

 private:
  /// A receive of what was accepted.
  struct Accepted {
    std::shared_ptr<MessageState> receive;
    std::uint64_t size = 0;
  };
  /// All that is known of another rank.
  struct Peer {
    std::optional<OutgoingConnection> out;
    std::optional<IncomingConnection> in;
    std::size_t out_polled = 0;  ///< its place in what is polled; 0: none
    std::size_t in_polled = 0;
    bool was_admitted = false;
    bool has_left = false;
    std::uint64_t credit = kCreditBytes;                             ///< what may be sent without being asked for
    std::uint64_t last_offer = 0;                                    ///< of ours
    std::map<std::uint64_t, std::shared_ptr<MessageState>> offered;  ///< what it may accept, by number
    std::uint64_t uncredited_bytes = 0;                              ///< small messages that came, not yet credited
    std::uint64_t received = 0;                                      ///< bytes of these that were received since
    std::uint64_t last_offer_seen = 0;                               ///< last number of the other rank's offers
    std::uint64_t offers_kept = 0;                                   ///< offers of these that nobody expects yet
    std::map<std::uint64_t, Accepted> accepted;                      ///< what it is going to send, by number
  };

  [[nodiscard]] bool is_complete(const MessageState& message) const;
  void progress(std::chrono::milliseconds at_most);
  [[nodiscard]] std::chrono::milliseconds poll_timeout(std::chrono::milliseconds at_most, SocketTime now) const;
  [[nodiscard]] bool is_ready(std::size_t place) const { return place != 0 && polled_[place].revents != 0; }
  void progress_connections(SocketTime now);
  void admit_ranks(SocketTime now);
  void handle_closed_connections();
  void handle_close(int rank, Peer& peer, const CloseReason& end);
  void fail(int rank, const std::string& why, std::string reason = {});
  [[nodiscard]] OutgoingConnection& connection_to(int rank);
  void credit(int from, std::uint64_t bytes);
  void deliver(MessageState& receive, Arrival arrival);
  void deliver_offer(const std::shared_ptr<MessageState>& receive, const Arrival& arrival);

  [[nodiscard]] Fault admit(int from, const FrameHead& head) override;
  [[nodiscard]] std::optional<std::span<std::byte>> target_of(int from, const FrameHead& head) override;
  [[nodiscard]] Fault take(int from, const FrameHead& head, std::vector<std::byte> bytes) override;
  [[nodiscard]] Fault handle_lost(int from, const FrameHead& head, const std::vector<std::byte>& text);
  [[nodiscard]] Fault handle_offer(int from, const FrameHead& head);
  [[nodiscard]] Fault handle_answer(int from, const FrameHead& head);
  [[nodiscard]] Fault handle_data(int from, const FrameHead& head);
  [[nodiscard]] Fault handle_credit(int from, const FrameHead& head);

  int rank_;
  std::vector<NetworkAddress> addresses_;
  Id128 token_;
  Id128 welcome_;
  ::pid_t process_;
  ConnectionAcceptor acceptor_;
  Socket wake_;  ///< an eventfd
  std::uint16_t channels_ = 0;
  std::string reason_;  ///< what a rank that failed has said; the connections send it from here
  std::map<int, Peer> peers_;
  Inbox inbox_;
  std::optional<Failure> failure_;
  bool has_given_up_ = false;  ///< on a message: this rank does not leave in order
  std::atomic<bool> interrupted_ = false;
  std::vector<::pollfd> polled_;         ///< first what wakes, then those of the acceptor, then the connections
  std::size_t acceptor_polled_end_ = 0;  ///< the first that is not the acceptor's
};

}  // namespace kedge::comm
