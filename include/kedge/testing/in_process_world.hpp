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

/// The ranks of one run. A rank is one thread, and those that Communicator::start_thread adds to it; it is live until
/// its function returned or threw, or until one of its threads died or stopped.
///
/// Time is virtual: a wait with a finite deadline never looks at the clock. It times out when it must: when
/// every thread of the live ranks waits and nothing that is awaited can come. Then the lowest rank whose deadline is
/// finite gets Error{timeout}, and the others go on waiting. If no deadline is finite, all get Error{bad_state}
/// "deadlock". A loop over test() is invisible to this; tests of such code must bound it themselves.
///
/// A run is deterministic (program and fault plan alone decide it, not the scheduling of threads) as long as ranks are
/// one thread each and use wait() rather than test().
class InProcessWorld {
 public:
  /// Local. Throws Error{invalid_argument} if `ranks` is below 1. `thread_support` is what communicators report.
  explicit InProcessWorld(int ranks, ThreadSupport thread_support = ThreadSupport::single);
  ~InProcessWorld();
  InProcessWorld(const InProcessWorld&) = delete;
  InProcessWorld& operator=(const InProcessWorld&) = delete;

  [[nodiscard]] int size() const noexcept;  ///< How many ranks there are.

  /// Local: a communicator of one rank, not yet connected; may outlive the world. A rank may have several: the nth
  /// that each rank connects belong together and never receive what was sent on others. Throws
  /// Error{invalid_argument} for a rank that is not in the world.
  [[nodiscard]] std::unique_ptr<Communicator> communicator(int rank);

  /// Local. Plans a fault, before run: the rank ends at its event number `event` (from 0). An event is a send, or a
  /// receive that wait() or test() finds complete; collective calls are made of these. One fault per rank; the last
  /// one planned counts. Throws Error{invalid_argument} for a rank that is not in the world.
  void stop_at(int rank, std::uint64_t event, StopKind kind);

  /// The rank is dead from now on, for a death that happens outside of communication (a file system's).
  /// Local, from any thread; a wait of that rank ends with SimulatedDeath, and so does its next call.
  void mark_dead(int rank);

  /// Runs `body(rank)` on one thread per rank and returns when all have ended, with how each ended, by rank. Once per
  /// world: throws Error{bad_state} if it has run, std::system_error if the system refuses a thread.
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
