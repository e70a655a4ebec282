// The messages of the ranks of one process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// A send or receive. Guarded by the mutex of InProcessMessages, except `target`, which only the thread that completes
/// the receive writes.
struct MessageRequest {
  int rank = 0;  ///< rank of this process that waits for it
  int from = 0;  ///< sender, if it is a receive
  std::span<std::byte> target;
  bool is_done = false;
  std::optional<Failure> failure;
};

/// Destination of a message. Channels are numbered by the order in which a rank opened them, alike on all ranks.
struct MessageAddress {
  int to = 0;
  int channel = 0;
  int tag = 0;
  auto operator<=>(const MessageAddress&) const = default;
};

/// A message to another process, or an answer to one.
struct OutgoingMessage {
  int process = 0;
  std::vector<std::byte> message;
};

/// Thread-safe.
class InProcessMessages {
 public:
  explicit InProcessMessages(std::vector<int> hosts, int process);

  [[nodiscard]] int size() const noexcept { return static_cast<int>(process_of_rank_.size()); }
  [[nodiscard]] int open_channel(int rank);

  /// Small messages are copied. The memory of others must stay as it is until the send is done, which is when they are
  /// received: a receiver holds its senders back, wherever they are.
  [[nodiscard]] std::shared_ptr<MessageRequest> send(int from, const MessageAddress& address,
                                                     std::span<const std::byte> bytes);
  [[nodiscard]] std::shared_ptr<MessageRequest> receive(int from, const MessageAddress& address,
                                                        std::span<std::byte> target);
  [[nodiscard]] bool test(const MessageRequest& request);
  [[nodiscard]] bool wait(const MessageRequest& request, Deadline deadline);

  // Calls of the thread that carries messages between processes.

  /// Takes a message from another process. Returns true if it says that all of that process's ranks have ended.
  [[nodiscard]] bool receive_from_process(std::vector<std::byte> message);
  [[nodiscard]] std::deque<OutgoingMessage> take_outgoing();
  /// Returns when there is something to send, a rank ends, or other processes may have sent something.
  void wait_for_work(bool others_may_send);
  void announce_end(int process);
  /// Fails every wait, now and later, with Error{rank_failed} and this text.
  void fail_all_waits(const std::string& why);
  void begin_rank();
  void end_rank();
  [[nodiscard]] bool has_running_ranks();

 private:
  /// A message without a matching receive.
  struct UnreceivedMessage {
    int from = 0;
    std::span<const std::byte> bytes;  ///< the sender's memory, or `copy`
    std::vector<std::byte> copy;
    std::shared_ptr<MessageRequest> send;      ///< the send that ends when the message is received; null for copies
    std::optional<std::uint64_t> remote_send;  ///< number of the send, if it waits in another process
  };
  struct Mailbox {
    std::list<UnreceivedMessage> messages;
    std::list<std::shared_ptr<MessageRequest>> receives;
  };
  using Lock = std::unique_lock<std::mutex>;

  void deliver_message(Lock& lock, const MessageAddress& address, UnreceivedMessage message);
  void complete_receive(Lock& lock, MessageRequest& receive, UnreceivedMessage message);
  void complete_request(MessageRequest& request);
  void post_message(int process, std::vector<std::byte> message);
  [[nodiscard]] std::condition_variable& condition_of_rank(int rank) { return conditions_.at(rank); }

  std::vector<int> process_of_rank_;
  int process_;
  std::mutex mutex_;
  std::map<int, std::condition_variable> conditions_;  ///< one for each rank of this process
  std::map<int, int> channel_counts_;
  std::map<MessageAddress, Mailbox> mailboxes_;
  std::map<std::uint64_t, std::shared_ptr<MessageRequest>> unconfirmed_sends_;
  std::uint64_t last_send_number_ = 0;
  std::deque<OutgoingMessage> outgoing_;
  std::condition_variable work_arrived_;
  std::optional<Failure> failure_;
  int running_rank_count_ = 0;
};

}  // namespace kedge::comm
