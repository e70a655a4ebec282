// What the engine needs from a message-passing layer. kedge::mpi() (mpi.hpp) gives the one over MPI.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kedge {

/// A point in time until which something may be waited for.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static Deadline never() noexcept { return Deadline{}; }
  [[nodiscard]] static Deadline after(std::chrono::duration<double> wait) {
    constexpr double kLongestWaitS = 3e8;  // ten years; more than that overflows the clock
    if (!(wait.count() < kLongestWaitS)) return never();
    Deadline deadline;
    deadline.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    return deadline;
  }
  [[nodiscard]] bool finite() const noexcept { return at_.has_value(); }
  [[nodiscard]] bool passed() const noexcept { return at_ && Clock::now() >= *at_; }

 private:
  std::optional<Clock::time_point> at_;
};

/// How the message-passing layer may be called from threads, as MPI names it.
enum class ThreadSupport : std::uint8_t { single, funneled, serialized, multiple };

enum class Reduction : std::uint8_t { min, max, sum, bit_or, bit_and };

/// A group of ranks that can send to each other. Everything is non-blocking below and is polled against a
/// deadline: a wait that passes it throws Error{timeout} that names whom it waited for. After that the
/// communicator must not be used again. There is no split: a group is a list of ranks.
class Communicator {
 public:
  /// One message of a sparse exchange; `peer` is the receiver on the way in, the sender on the way out.
  struct Message {
    int peer = 0;
    std::vector<std::byte> bytes;
  };

  /// A send or receive under way. Destroying one that is not complete keeps its resources (leaks them on
  /// purpose): the memory it points to must then stay valid until the process ends.
  class Operation {
   public:
    Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    virtual ~Operation() = default;
  };
  using Request = std::unique_ptr<Operation>;

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// COLLECTIVE. Makes the engine's private channel (for MPI: one duplicate of the given communicator).
  /// Called once, before anything below except rank() and size().
  virtual void connect(Deadline deadline) = 0;
  /// COLLECTIVE. A second communicator over the same ranks, connected, whose messages never meet those of this one: for
  /// another thread, where thread_support() allows it to communicate. Outlives this one if need be.
  [[nodiscard]] virtual std::unique_ptr<Communicator> duplicate(Deadline deadline) = 0;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// The communicator's name if it has one, else empty; part of the default run name.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual ThreadSupport thread_support() const noexcept = 0;

  /// Local: starts a send or receive of exactly `bytes` on `channel` (0 to 1023). The memory must stay valid
  /// and untouched until wait returned it complete. Messages of one pair and channel keep their order.
  [[nodiscard]] virtual Request send(int to, int channel, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Request receive(int from, int channel, std::span<std::byte> bytes) = 0;
  /// Local: true if complete; the request is then empty. A null request is complete.
  [[nodiscard]] virtual bool test(Request& request) = 0;
  /// Local: waits for all of them.
  virtual void wait(std::span<Request> requests, Deadline deadline) = 0;

  /// COLLECTIVE over `group` (rank list, the same on all its members, containing this rank); an empty list
  /// means all ranks.
  virtual void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                          std::span<const int> group = {}) = 0;
  /// COLLECTIVE over `group`; `root` is a rank of the communicator, not an index into the group.
  virtual void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group = {}) = 0;
  /// COLLECTIVE over `group`.
  virtual void barrier(Deadline deadline, std::span<const int> group = {}) = 0;
  /// COLLECTIVE over all ranks. Sends each message to its peer (itself included) and returns what came for
  /// this rank, ordered by sender, messages of one sender in order. Cost grows with the messages, not ranks.
  [[nodiscard]] virtual std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) = 0;
};

}  // namespace kedge
