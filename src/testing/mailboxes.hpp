// The state behind InProcessWorld; see there for what it promises.
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
#include <span>
#include <utility>
#include <vector>

#include "kedge/testing/in_process_world.hpp"

namespace kedge::testing {

enum class Life : std::uint8_t { live, stopped, dead, finished };
enum class Wake : std::uint8_t { complete, timeout, deadlock, death };

struct Fault {
  std::uint64_t event = 0;
  StopKind kind = StopKind::die;
};

class PostedReceive;

/// What all ranks of a world share: messages under way, who lives, who waits. Everything is under one mutex:
/// ranks are few and their messages small. Calls of a dead rank throw SimulatedDeath.
class Mailboxes {
 public:
  Mailboxes(int ranks, ThreadSupport support)
      : thread_support(support), ranks_(static_cast<std::size_t>(ranks)), live_(ranks) {}

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  void check_rank(int rank) const;

  void plan(int rank, Fault fault);
  void retire(int rank, Life life);
  void wait_until_no_rank_is_live();
  [[nodiscard]] bool begin_run();
  /// Number of this rank's communicators that connected before.
  [[nodiscard]] int next_connection(int rank);
  [[nodiscard]] std::uint64_t messages() const;
  [[nodiscard]] std::uint64_t events(int rank) const;

  void send(int from, int to, int channel, std::span<const std::byte> bytes);
  void post(PostedReceive& receive);
  void withdraw(PostedReceive& receive);
  [[nodiscard]] bool test(Communicator::Request& request, int rank);
  [[nodiscard]] Wake wait(std::span<Communicator::Request> requests, int rank, bool finite);

  const ThreadSupport thread_support;

 private:
  /// What came for a rank from one sender on one channel, and who waits for it; one of the two is empty.
  struct Lane {
    std::list<std::vector<std::byte>> arrived;
    std::list<PostedReceive*> posted;
  };
  struct Rank {
    Life life = Life::live;
    std::map<std::pair<int, int>, Lane> lanes;  // by sender and channel
    int connections = 0;
    std::uint64_t events = 0;
    std::optional<Fault> fault;
    bool waiting = false;
    bool finite = false;         // the wait has a deadline
    std::size_t missing = 0;     // receives that the wait still lacks
    Wake wake = Wake::complete;  // why it ended
    std::condition_variable changed;
  };

  [[nodiscard]] Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void check_alive(const Rank& rank) const;
  void step(std::unique_lock<std::mutex>& lock, int rank);
  void finish_receive(std::unique_lock<std::mutex>& lock, Communicator::Request& request, int rank);
  void end_wait(Rank& rank, Wake wake);
  void retire_locked(int rank, Life life);
  void resolve_quiescence();

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  int live_;
  int waiting_ = 0;
  bool begun_ = false;
  bool released_ = false;
  std::uint64_t messages_ = 0;
  std::condition_variable all_ended_;
};

/// A posted receive. The sender fills it, under the mutex.
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
  bool awaited = false;  // by a wait that has not ended
  std::size_t received_bytes = 0;
  std::atomic<bool> done = false;  // read without the mutex by the destructor

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
  std::span<std::byte> bytes_;
};

}  // namespace kedge::testing
