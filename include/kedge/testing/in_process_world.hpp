// Ranks as threads of one process, with simulated deaths and virtual time: the library kedge::testing, for tests.
//
// GoogleTest has a namespace of the same name: where `using namespace kedge` is in force, write ::testing for its own.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::testing {

class Mailboxes;

/// How a rank ends at a planned event.
enum class StopKind : std::uint8_t {
  die,   ///< SimulatedDeath is thrown from that event and from every later call of the rank
  stop,  ///< the rank hangs in that event; the run ends it with SimulatedDeath when all others have ended
};

/// How one rank's thread ended. Any other exception ends the process.
struct RankOutcome {
  bool died = false;               ///< by SimulatedDeath
  std::optional<Failure> failure;  ///< kedge::Error that the rank threw
  std::exception_ptr exception;    ///< std::exception that the rank threw (also set beside failure)
  /// Whether the rank neither died nor threw.
  [[nodiscard]] bool returned() const noexcept { return !died && exception == nullptr; }
};

/// The ranks of one run. A rank consists of one thread and those that Communicator::start_thread adds. It is live until
/// its function returns or throws, or one of its threads dies or stops.
///
/// Time is virtual: waits never look at the clock. When every thread of the live ranks waits and none of the awaited
/// messages can come, the lowest rank with a finite deadline gets Error{timeout}, and the others continue to wait. If
/// no deadline is finite, all get Error{bad_state} "deadlock". Loops over test() are not detected as waits; tests of
/// such code must limit them.
///
/// Runs are deterministic (they depend on program and fault plan, not on thread scheduling) as long as each rank has
/// one thread and uses wait() rather than test().
class InProcessWorld {
 public:
  /// Local. Throws Error{invalid_argument} if `ranks` is below 1. `thread_support` is what communicators report.
  explicit InProcessWorld(int ranks, ThreadSupport thread_support = ThreadSupport::single);
  ~InProcessWorld();
  InProcessWorld(const InProcessWorld&) = delete;
  InProcessWorld& operator=(const InProcessWorld&) = delete;

  [[nodiscard]] int size() const noexcept;  ///< How many ranks there are.

  /// Local. A communicator of one rank, not yet connected; it may outlive the world. A rank may have several: the nth
  /// ones that the ranks connect belong together, with separate messages. Throws Error{invalid_argument} if there is no
  /// such rank.
  [[nodiscard]] std::unique_ptr<Communicator> communicator(int rank);

  /// Local. Plans a fault before run: the rank ends at its event number `event` (from 0). An event is a send, or a
  /// receive that wait() or test() finds complete; collective calls consist of these. Only the last fault planned for a
  /// rank counts. Throws Error{invalid_argument} if there is no such rank.
  void stop_at(int rank, std::uint64_t event, StopKind kind);

  /// Local, from any thread. Kills the rank outside of communication (e.g. in a simulated file system): its current
  /// wait and its next call end with SimulatedDeath.
  void mark_dead(int rank);

  /// Runs `body(rank)` on one thread per rank and returns, when all have ended, how each ended. Call it once per world:
  /// throws Error{bad_state} the second time, std::system_error if a thread cannot be created.
  std::vector<RankOutcome> run(const std::function<void(int rank)>& body);

  /// Runs the body with a connected communicator for each rank, valid until `body` returns.
  std::vector<RankOutcome> run_connected(const std::function<void(Communicator&)>& body);

  /// Local, from any thread: messages sent so far by all ranks, and the events so far of one.
  [[nodiscard]] std::uint64_t messages() const;
  [[nodiscard]] std::uint64_t events(int rank) const;  ///< Number of events of one rank so far.

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
};

}  // namespace kedge::testing
