// The message-passing interface that the engine uses. kedge::mpi() (mpi.hpp) returns one over MPI.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// A point in time until which something may be waited for. Time in which the process did not run, because it was
/// suspended, frozen or stopped, does not count once a Patience has noticed it.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;  ///< Never set back.

  [[nodiscard]] static Deadline never() noexcept { return Deadline{}; }      ///< Wait as long as it takes.
  [[nodiscard]] static Deadline after(std::chrono::duration<double> wait) {  ///< From now on.
    constexpr double kLongestWaitS = 3e8;  // ten years; more than that overflows the clock
    if (!(wait.count() < kLongestWaitS)) return never();
    Deadline deadline;
    deadline.at_ = now() + std::chrono::duration_cast<Clock::duration>(wait);
    deadline.stopped_before_s_ = process_stopped_s();
    return deadline;
  }
  [[nodiscard]] bool finite() const noexcept { return at_.has_value(); }       ///< Not never().
  [[nodiscard]] bool passed() const noexcept { return at_ && now() >= *at_; }  ///< Whether the deadline is over.
  [[nodiscard]] double seconds_left() const noexcept {  ///< 0 if it has passed; infinite if it never does.
    if (!at_) return std::numeric_limits<double>::infinity();
    return std::max(0.0, std::chrono::duration<double>(*at_ - now()).count());
  }
  /// How much of the time since it was made the process did not run: for messages.
  [[nodiscard]] double stopped_s() const noexcept { return at_ ? process_stopped_s() - stopped_before_s_ : 0; }

 private:
  [[nodiscard]] static Clock::time_point now() noexcept;
  [[nodiscard]] static double process_stopped_s() noexcept;

  std::optional<Clock::time_point> at_;
  double stopped_before_s_ = 0;
};

/// One wait until a Deadline, as a loop that looks again at least every slice(). If is_over() is asked, or the wait
/// ends, much later than that, the process was stopped in between: all its deadlines become that much later, so that a
/// job that was suspended for an hour does not time out. For all code that waits until a Deadline, transports included.
class WaitTimer {
 public:
  explicit WaitTimer(Deadline deadline) noexcept;  ///< The wait begins now.
  ~WaitTimer();                                    ///< The wait ends now.
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;
  /// Whether the deadline has passed. Ask it before each sleep, after looking for what is waited for.
  [[nodiscard]] bool is_over() noexcept;
  /// How long to sleep at most before the next look: 0.1 s, or what is left.
  [[nodiscard]] std::chrono::duration<double> slice() const noexcept;

 private:
  Deadline deadline_;
  Deadline::Clock::time_point looked_;
};

/// How the message-passing layer may be called from threads, as MPI names it: single, funneled, serialized, multiple.
enum class ThreadSupport : std::uint8_t { single, funneled, serialized, multiple };

/// How all_reduce combines the values: min, max, sum, bit_or or bit_and.
enum class Reduction : std::uint8_t { min, max, sum, bit_or, bit_and };

/// Ranks that can send to each other. All operations are non-blocking internally and polled against a deadline:
/// a wait that exceeds it throws Error{timeout}, which names the rank it waited for, and one that fails throws
/// Error{rank_failed}, which names the ranks that died where that is known. After either the communicator must not be
/// used again. There is no split: a group is a list of ranks.
class Communicator {
 public:
  /// One message of a sparse exchange; `peer` is the receiver in the argument, the sender in the result.
  struct Message {
    int peer = 0;                  ///< a rank
    std::vector<std::byte> bytes;  ///< the content
  };

  /// A send or receive in progress. Destroying one that is not complete leaks its resources on purpose: the
  /// memory it points to must then stay valid until the process ends.
  class Operation {
   public:
    Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    virtual ~Operation() = default;
  };
  using Request = std::unique_ptr<Operation>;  ///< Null is complete.

  /// How one thread of this rank wakes another. Raised while nobody waits, it ends the next wait; raised several times,
  /// still one.
  class Signal {
   public:
    Signal() = default;
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    virtual ~Signal() = default;
    virtual void raise() noexcept = 0;  ///< From any thread.
    /// From one thread at a time. False if the deadline passed first.
    [[nodiscard]] virtual bool wait(Deadline deadline) = 0;
  };

  /// A second thread of this rank, less urgent than the one that starts it. Destroying it waits for its end, unless
  /// join() gave up on it.
  class Thread {
   public:
    Thread() = default;
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    virtual ~Thread() = default;
    /// False if it has not ended by then: it is left alone, and what it uses must live on.
    [[nodiscard]] virtual bool join(Deadline deadline) = 0;
  };

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// COLLECTIVE. Creates the engine's private channel (for MPI: duplicates the given communicator).
  /// Called once, before everything below except rank() and size().
  virtual void connect(Deadline deadline) = 0;
  /// COLLECTIVE. A second communicator over the same ranks, connected, whose messages never meet those of this one: for
  /// another thread, where thread_support() allows it to communicate. Outlives this one if need be.
  [[nodiscard]] virtual std::unique_ptr<Communicator> duplicate(Deadline deadline) = 0;

  [[nodiscard]] virtual int rank() const noexcept = 0;  ///< Rank of this process, from 0.
  [[nodiscard]] virtual int size() const noexcept = 0;  ///< How many ranks there are.
  /// The communicator's name if it has one, else empty: the default run name, and the second half of a given one.
  [[nodiscard]] virtual std::string name() const = 0;
  /// The message-passing library and its version, for messages, e.g. "Open MPI v4.1.4".
  [[nodiscard]] virtual std::string library() const { return "the message-passing library"; }
  /// A warning for the user when an engine starts, e.g. that the launcher belongs to another library; empty if there is
  /// none.
  [[nodiscard]] virtual std::string start_warning() const { return {}; }
  /// An id of the launch that these ranks belong to: the same on all of them, different in every other launch. Empty:
  /// taken from the environment.
  [[nodiscard]] virtual std::string launch() const { return {}; }
  [[nodiscard]] virtual ThreadSupport thread_support() const noexcept = 0;  ///< Which threads may call.

  /// Local: starts a send or receive of exactly `bytes` on `channel` (0 to 1023). The memory must stay valid
  /// and untouched until the operation is complete. Messages between two ranks on one channel arrive in order.
  [[nodiscard]] virtual Request send(int to, int channel, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Request receive(int from, int channel, std::span<std::byte> bytes) = 0;  ///< Begins to receive
                                                                                                 ///< a message; as
                                                                                                 ///< send.
  /// Local: true if complete; the request is then empty. A null request is complete.
  [[nodiscard]] virtual bool test(Request& request) = 0;
  /// Local: waits until all requests are complete.
  virtual void wait(std::span<Request> requests, Deadline deadline) = 0;

  /// COLLECTIVE over `group` (list of ranks, identical on all its members, including this rank); an empty list
  /// means all ranks.
  virtual void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                          std::span<const int> group = {}) = 0;
  /// COLLECTIVE over `group`; `root` is a rank of the communicator, not an index into the group.
  virtual void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group = {}) = 0;
  /// COLLECTIVE over `group`.
  virtual void barrier(Deadline deadline, std::span<const int> group = {}) = 0;
  /// COLLECTIVE over all ranks. Sends each message to its peer (itself included) and returns the messages
  /// received, ordered by sender, those of one sender in order. Cost grows with the messages, not with the ranks.
  [[nodiscard]] virtual std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) = 0;

  /// Local, from any thread. Whoever waits on this communicator, now or later, soon gets Error{timeout}, as if the
  /// deadline had passed: for a thread that must end. It must not be used again.
  virtual void interrupt() noexcept = 0;
  /// Local. This rank has failed during a collective call, and takes no further part: whoever waits on this
  /// communicator on another rank, now or later, soon gets Error{rank_failed} with the text `why`. It must not be used
  /// again. Does nothing if the message layer cannot do that: the others then wait for their deadline.
  virtual void leave(std::string_view /*why*/) noexcept {}
  /// Local. A collective call of the layers above begins; all ranks make the same ones.
  virtual void begin_call() noexcept {}
  /// Local. Between two calls: this rank makes no more of them, while others may still be in the last one. Whoever
  /// waits in a later one gets Error{rank_failed} with the text `why`. Otherwise as leave.
  virtual void depart(std::string_view /*why*/) noexcept {}
  /// Local. Threads of this rank that wait for each other; a communicator in virtual time has its own. The body must
  /// not throw. Signals of the process are not delivered to the thread. Throws std::system_error.
  [[nodiscard]] virtual std::unique_ptr<Signal> signal();
  [[nodiscard]] virtual std::unique_ptr<Thread> start_thread(std::function<void()> body);  ///< Starts a thread of this
                                                                                           ///< rank; the thread
                                                                                           ///< counterpart of signal().
};

/// What makes an Engine of a message layer's own handle: a header for that layer, such as kedge/mpi.hpp, specializes it
/// with `static std::unique_ptr<Communicator> make(const Handle& ranks)`.
template <class Handle>
struct CommunicatorOf {};

}  // namespace kedge
