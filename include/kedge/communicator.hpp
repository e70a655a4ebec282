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

/// A point in time until which a call waits. Time in which the process did not run, because it was suspended, frozen or
/// stopped, does not count once a WaitTimer has noticed it.
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
  /// For messages: how long the process was stopped since this deadline was made.
  [[nodiscard]] double stopped_s() const noexcept { return at_ ? process_stopped_s() - stopped_before_s_ : 0; }

 private:
  [[nodiscard]] static Clock::time_point now() noexcept;
  [[nodiscard]] static double process_stopped_s() noexcept;

  std::optional<Clock::time_point> at_;
  double stopped_before_s_ = 0;
};

/// Times one wait, for a loop that checks at least every slice(). If is_over() is called, or the wait ends, much later
/// than that, the process was stopped in between, and all its deadlines are moved by that time: a job that was
/// suspended for an hour does not time out. All code that waits until a Deadline uses it, transports included.
class WaitTimer {
 public:
  explicit WaitTimer(Deadline deadline) noexcept;  ///< The wait begins now.
  ~WaitTimer();                                    ///< The wait ends now.
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;
  /// Whether the deadline has passed. Call it before each sleep, after checking the condition.
  [[nodiscard]] bool is_over() noexcept;
  /// Maximum time to sleep before the next check: 0.1 s, or what is left.
  [[nodiscard]] std::chrono::duration<double> slice() const noexcept;

 private:
  Deadline deadline_;
  Deadline::Clock::time_point last_check_;
};

/// From which threads the message layer may be called, named as in MPI: single, funneled, serialized, multiple.
enum class ThreadSupport : std::uint8_t { single, funneled, serialized, multiple };

/// How all_reduce combines the values: min, max, sum, bit_or or bit_and.
enum class Reduction : std::uint8_t { min, max, sum, bit_or, bit_and };

/// Ranks that can send messages to each other. Operations do not block internally and are polled against a deadline: a
/// wait that exceeds it throws Error{timeout} with the rank it waited for; one that fails throws Error{rank_failed}
/// with the ranks that died, if known. Do not use the communicator after either. There is no split: a group is a list
/// of ranks.
class Communicator {
 public:
  /// A message of a sparse exchange; `peer` is the receiver in the argument and the sender in the result.
  struct Message {
    int peer = 0;                  ///< a rank
    std::vector<std::byte> bytes;  ///< the content
  };

  /// A send or receive in progress. Destroying an incomplete one leaks its resources on purpose; its memory must then
  /// stay valid until the process ends.
  class Operation {
   public:
    Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    virtual ~Operation() = default;
  };
  using Request = std::unique_ptr<Operation>;  ///< Null is complete.

  /// Lets one thread of this rank wake another. Raising it while nobody waits ends the next wait; raising it several
  /// times counts once.
  class Signal {
   public:
    Signal() = default;
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    virtual ~Signal() = default;
    virtual void raise() noexcept = 0;  ///< From any thread.
    /// Call it from one thread at a time. False if the deadline passed first.
    [[nodiscard]] virtual bool wait(Deadline deadline) = 0;
  };

  /// A second thread of this rank, with lower priority than the first. Destroying it waits for its end, unless join()
  /// returned false.
  class Thread {
   public:
    Thread() = default;
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    virtual ~Thread() = default;
    /// False if it has not ended in time: it goes on, and everything it uses must stay valid.
    [[nodiscard]] virtual bool join(Deadline deadline) = 0;
  };

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// COLLECTIVE. Creates the engine's private channel (MPI: duplicates the given communicator). The engine calls it
  /// once, before all other calls except rank() and size().
  virtual void connect(Deadline deadline) = 0;
  /// COLLECTIVE. Returns a second, connected communicator over the same ranks with separate messages, for another
  /// thread, if thread_support() permits. It may outlive this one.
  [[nodiscard]] virtual std::unique_ptr<Communicator> duplicate(Deadline deadline) = 0;

  [[nodiscard]] virtual int rank() const noexcept = 0;  ///< Rank of this process, from 0.
  [[nodiscard]] virtual int size() const noexcept = 0;  ///< How many ranks there are.
  /// The communicator's name, which may be empty: the default run name, or the second half of a given one.
  [[nodiscard]] virtual std::string name() const = 0;
  /// The message-passing library and its version, for messages, e.g. "Open MPI v4.1.4".
  [[nodiscard]] virtual std::string library() const { return "the message-passing library"; }
  /// A warning to log when an engine starts, e.g. that the launcher belongs to another library; may be empty.
  [[nodiscard]] virtual std::string start_warning() const { return {}; }
  /// An id of this launch, equal on all its ranks and different in every other launch. If empty, the engine takes one
  /// from the environment.
  [[nodiscard]] virtual std::string launch() const { return {}; }
  [[nodiscard]] virtual ThreadSupport thread_support() const noexcept = 0;  ///< Which threads may call.

  /// Local. Starts to send exactly `bytes` on `channel` (0 to 1023). The memory must stay valid and unchanged until the
  /// operation is complete. Messages between two ranks on one channel arrive in order.
  [[nodiscard]] virtual Request send(int to, int channel, std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Request receive(int from, int channel, std::span<std::byte> bytes) = 0;  ///< Begins to receive
                                                                                                 ///< a message; as
                                                                                                 ///< send.
  /// Local. True if complete; resets the request then. A null request is complete.
  [[nodiscard]] virtual bool test(Request& request) = 0;
  /// Local. Waits until all requests are complete.
  virtual void wait(std::span<Request> requests, Deadline deadline) = 0;

  /// COLLECTIVE over `group`, a list of ranks that contains this one and is identical on all of them; an empty list
  /// means all ranks.
  virtual void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                          std::span<const int> group = {}) = 0;
  /// COLLECTIVE over `group`; `root` is a rank of the communicator, not an index into the group.
  virtual void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group = {}) = 0;
  /// COLLECTIVE over `group`.
  virtual void barrier(Deadline deadline, std::span<const int> group = {}) = 0;
  /// COLLECTIVE over all ranks. Sends each message to its peer (perhaps this rank) and returns the received messages,
  /// ordered by sender, those of one sender in order. Cost grows with the messages, not with the number of ranks.
  [[nodiscard]] virtual std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) = 0;

  /// Local, from any thread. Ends current and later waits on this communicator with Error{timeout}, for a thread that
  /// must end. Do not use the communicator afterwards.
  virtual void interrupt() noexcept = 0;
  /// Local. This rank failed during a collective call and takes no further part: ends the other ranks' current and
  /// later waits with Error{rank_failed} and the text `why`. Do not use the communicator afterwards. Does nothing if
  /// the message layer cannot do that: the others then wait until their deadline.
  virtual void leave(std::string_view /*why*/) noexcept {}
  /// Local. A collective call of the engine begins; all ranks make the same calls.
  virtual void begin_call() noexcept {}
  /// Local. Like leave(), but between two calls: others may still complete the last call; only waits in later calls end
  /// with Error{rank_failed} and the text `why`.
  virtual void depart(std::string_view /*why*/) noexcept {}
  /// Local. A signal between threads of this rank; communicators in virtual time have their own.
  [[nodiscard]] virtual std::unique_ptr<Signal> signal();
  /// Local. Starts a thread of this rank, to which the process's signals are not delivered. `body` must not throw.
  /// Throws std::system_error.
  [[nodiscard]] virtual std::unique_ptr<Thread> start_thread(std::function<void()> body);
};

/// Makes an Engine from a message layer's own handle. A header for that layer, such as kedge/mpi.hpp, specializes it
/// with `static std::unique_ptr<Communicator> make(const Handle& ranks)`.
template <class Handle>
struct CommunicatorOf {};

}  // namespace kedge
