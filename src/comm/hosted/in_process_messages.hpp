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

/// A send or receive. Under the mutex of the mail, but for `target`, which whoever matched it fills alone.
struct MessageRequest {
  int rank = 0;  ///< rank of this process that waits for it
  int from = 0;  ///< of a receive
  std::span<std::byte> target;
  bool done = false;
  std::optional<Failure> failure;
};

/// Where a message is going: the channel that a rank opened as its nth is the others' nth, too.
struct Address {
  int to = 0;
  int channel = 0;
  int tag = 0;
  auto operator<=>(const Address&) const = default;
};

/// A message to another process, or an answer to one.
struct Outgoing {
  int process = 0;
  std::vector<std::byte> message;
};

/// All calls may come from any thread.
class InProcessMessages {
 public:
  explicit InProcessMessages(std::vector<int> hosts, int process);

  [[nodiscard]] int size() const noexcept { return static_cast<int>(hosts_.size()); }
  [[nodiscard]] int next_channel(int rank);

  /// Small messages are copied. The memory of others must stay as it is until the send is done, which is when they are
  /// received: a receiver holds its senders back, wherever they are.
  [[nodiscard]] std::shared_ptr<MessageRequest> send(int from, const Address& address,
                                                     std::span<const std::byte> bytes);
  [[nodiscard]] std::shared_ptr<MessageRequest> receive(int from, const Address& address, std::span<std::byte> target);
  [[nodiscard]] bool test(const MessageRequest& transit);
  [[nodiscard]] bool wait(const MessageRequest& transit, Deadline deadline);

  // Calls of the thread that carries messages between processes.

  /// True if it was another process's word that its ranks have ended.
  [[nodiscard]] bool receive_from_process(std::vector<std::byte> message);
  [[nodiscard]] std::deque<Outgoing> take_outgoing();
  /// Returns at once if there is something to send, or when a rank ends; soon if other processes may send something.
  void wait_for_work(bool others_may_send);
  void announce_end(int process);
  /// Every wait, now or later, throws Error{rank_failed} with these words: other ranks cannot know.
  void fail(const std::string& why);
  void rank_begins();
  void rank_ends();
  [[nodiscard]] bool has_ranks_left();

 private:
  /// A message that nobody has received yet.
  struct UnreceivedMessage {
    int from = 0;
    std::span<const std::byte> bytes;  ///< of the sender, or of `copy`
    std::vector<std::byte> copy;
    std::shared_ptr<MessageRequest> sent;    ///< waits for it to be received; null if nobody does
    std::optional<std::uint64_t> answer_to;  ///< the waiting sender's request, if it is in another process
  };
  struct Box {
    std::list<UnreceivedMessage> parcels;
    std::list<std::shared_ptr<MessageRequest>> expected;
  };
  using Lock = std::unique_lock<std::mutex>;

  void deliver(Lock& lock, const Address& address, UnreceivedMessage parcel);
  void complete_receive(Lock& lock, MessageRequest& receive, UnreceivedMessage parcel);
  void finish(MessageRequest& transit);
  void post(int process, std::vector<std::byte> message);
  [[nodiscard]] std::condition_variable& changed(int rank) { return changed_.at(rank); }

  std::vector<int> hosts_;
  int process_;
  std::mutex mutex_;
  std::map<int, std::condition_variable> changed_;  ///< by rank of this process
  std::map<int, int> channels_;
  std::map<Address, Box> boxes_;
  std::map<std::uint64_t, std::shared_ptr<MessageRequest>> unanswered_;
  std::uint64_t answers_ = 0;
  std::deque<Outgoing> outgoing_;
  std::condition_variable something_to_send_;
  std::optional<Failure> failure_;
  int ranks_left_ = 0;
};

}  // namespace kedge::comm
