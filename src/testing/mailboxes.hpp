// Shared state of InProcessWorld, which documents its promises.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kedge/testing/in_process_world.hpp"

namespace kedge::testing {

enum class RankState : std::uint8_t { live, stopped, dead, finished };
enum class WakeReason : std::uint8_t { complete, timeout, deadlock, death, interrupted, left };

struct Fault {
  std::uint64_t event = 0;
  StopKind kind = StopKind::die;
};

class PostedReceive;

/// A waiting thread.
struct Waiter {
  int connection = 0;       ///< that it waits on; none for a signal
  bool finite = false;      ///< has a deadline
  std::size_t missing = 0;  ///< missing receives
  bool waiting = true;
  WakeReason wake = WakeReason::complete;  ///< why the wait ended
  std::condition_variable changed;
};

/// State of a rank's signal; guarded by the mutex.
struct SignalState {
  bool raised = false;
  Waiter* waiter = nullptr;
};

/// State shared by all ranks of a world: messages, live ranks, waiting threads. One mutex guards everything, because
/// ranks are few and messages small. A dead rank's calls throw SimulatedDeath, in each of its threads.
class Mailboxes {
 public:
  Mailboxes(int ranks, ThreadSupport support)
      : thread_support(support), ranks_(static_cast<std::size_t>(ranks)), live_(ranks), threads_(ranks) {}

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  void check_rank(int rank) const;

  void plan(int rank, Fault fault);
  void retire(int rank, RankState life);
  void wait_until_no_rank_is_live();
  [[nodiscard]] bool begin_run();
  /// Number of the rank's earlier communicators.
  [[nodiscard]] int next_connection(int rank);
  [[nodiscard]] std::uint64_t messages() const;
  [[nodiscard]] std::uint64_t events(int rank) const;

  void send(int from, int to, int channel, std::span<const std::byte> bytes);
  void post(PostedReceive& receive);
  void withdraw(PostedReceive& receive);
  [[nodiscard]] bool test(Communicator::Request& request, int rank);
  /// `connection` is the communicator's on which the thread waits.
  [[nodiscard]] WakeReason wait(std::span<Communicator::Request> requests, int rank, int connection, bool finite);
  void interrupt(int rank, int connection);
  /// The rank stops communicating on this connection of all ranks.
  void leave(int connection, std::string why);
  [[nodiscard]] std::string why_left(int connection) const;

  void raise(SignalState& signal);
  [[nodiscard]] WakeReason wait(SignalState& signal, int rank, bool finite);
  /// A further thread of the rank begins.
  void thread_begins(int rank);
  void thread_ends(int rank);

  const ThreadSupport thread_support;
  const std::string launch = to_string(random_id());  ///< see Communicator::launch

 private:
  /// Messages to a rank from one sender on one channel, or the receives that wait for them.
  struct Lane {
    std::list<std::vector<std::byte>> arrived;
    std::list<PostedReceive*> posted;
  };
  struct Rank {
    RankState life = RankState::live;
    std::map<std::pair<int, int>, Lane> lanes;  // by sender and channel
    int connections = 0;
    std::uint64_t events = 0;
    std::optional<Fault> fault;
    int threads = 1;
    std::list<Waiter*> waiters;  // at most one for each thread
    std::set<int> interrupted;   // connections
    std::condition_variable released;
  };

  [[nodiscard]] Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void check_alive(const Rank& rank) const;
  void step(std::unique_lock<std::mutex>& lock, int rank);
  void finish_receive(std::unique_lock<std::mutex>& lock, Communicator::Request& request, int rank);
  [[nodiscard]] WakeReason wait_as(std::unique_lock<std::mutex>& lock, Rank& rank, Waiter& self);
  void end_wait(Waiter& waiter, WakeReason wake);
  void retire_locked(int rank, RankState life);
  void resolve_quiescence();

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  int live_;         // ranks
  int threads_;      // of live ranks
  int waiting_ = 0;  // threads that wait
  bool begun_ = false;
  bool released_ = false;
  std::uint64_t messages_ = 0;
  std::map<int, std::string> left_;  // reasons, by connection
  std::condition_variable all_ended_;
};

/// A posted receive, which the sender fills under the mutex.
class PostedReceive final : public Communicator::Operation {
 public:
  PostedReceive(std::shared_ptr<Mailboxes> mailboxes, int receiver, int sender, int lane, std::span<std::byte> bytes)
      : rank(receiver), from(sender), channel(lane), mailboxes_(std::move(mailboxes)), bytes_(bytes) {}
  ~PostedReceive() override {
    if (!done) mailboxes_->withdraw(*this);
  }

  void fill(std::span<const std::byte> message) {
    received_bytes = message.size();
    if (fits() && !message.empty()) std::memcpy(bytes_.data(), message.data(), message.size());
    done = true;
  }
  [[nodiscard]] bool fits() const noexcept { return received_bytes == bytes_.size(); }
  [[nodiscard]] std::size_t expected_bytes() const noexcept { return bytes_.size(); }

  const int rank;
  const int from;
  const int channel;
  Waiter* awaited_by = nullptr;  // a wait in progress
  std::size_t received_bytes = 0;
  std::atomic<bool> done = false;  // the destructor reads it without the mutex

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
  std::span<std::byte> bytes_;
};

}  // namespace kedge::testing
