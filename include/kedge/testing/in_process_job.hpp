// Runs a job of several ranks in one process, with simulated deaths and restarts: the library kedge::testing, for
// tests.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kedge/communicator.hpp"
#include "kedge/engine.hpp"
#include "kedge/options.hpp"
#include "kedge/testing/in_process_world.hpp"

namespace kedge::testing {

/// One job and its starts. In each start every rank is a thread with an engine of its own over a new InProcessWorld, on
/// the real filesystem: what a start leaves in the stores and on the prefix is there for the next.
///
///   Options options;
///   options.store.path = "/tmp/try/{node}";       // a directory for each node: remove it and the node is lost
///   options.persistent.path = "/tmp/try/prefix";
///   setenv("KEDGE_TEST_RANKS_PER_NODE", "1", 1);  // nodes of one rank, called node0, node1, ...
///   InProcessJob job(4, options);
///   job.stop_at(2, 200);                          // kills rank 2
///   job.start([](Engine& engine, Communicator& communicator) { ... });
///   job.start([](Engine& engine, Communicator& communicator) { ... });  // finds what the first one committed
///
/// Deaths run destructors. Those of an engine change no file, so files are as after a kill, though not as after a power
/// loss. An engine that timed out keeps what it had mapped until the process ends, as it does over MPI. Options::load()
/// reads the environment, which all ranks share, and so does KEDGE_TEST_RANKS_PER_NODE, when an engine is made. A job
/// is used by one thread.
class InProcessJob {
 public:
  /// Body of one rank, with its engine and a connected communicator for its own messages. Both are valid until it
  /// returns.
  using Body = std::function<void(Engine& engine, Communicator& communicator)>;

  /// Local. A job with the same options on every rank. Throws Error{invalid_argument} if `ranks` is below 1.
  InProcessJob(int ranks, Options options);
  /// Local. Options by rank, of which `store.path` and `log` may differ: a `store.path` per node is another way to
  /// simulate nodes. The function is called in each start, by all ranks' threads at once.
  InProcessJob(int ranks, std::function<Options(int rank)> options);

  /// Local. Plans a fault for the next start, as InProcessWorld::stop_at does. Engines use random ids, so the number of
  /// events varies: to try all, increase `event` until the rank returns. Throws Error{invalid_argument} if there is no
  /// such rank.
  void stop_at(int rank, std::uint64_t event, StopKind kind = StopKind::die);

  /// Starts the job: every rank makes its engine and runs `body`. Returns, when all have ended, how each rank ended,
  /// including exceptions of the engine's constructor or `body`. Throws std::system_error if a thread cannot be
  /// created.
  std::vector<RankOutcome> start(const Body& body);

  /// Local. Events of each rank in the last start, including those of the engine's constructor; 0 before the first
  /// start.
  [[nodiscard]] const std::vector<std::uint64_t>& events() const noexcept { return events_; }

 private:
  struct Fault {
    int rank = 0;
    std::uint64_t event = 0;
    StopKind kind = StopKind::die;
  };

  int ranks_;
  std::function<Options(int rank)> options_;
  std::vector<Fault> faults_;
  std::vector<std::uint64_t> events_;
};

}  // namespace kedge::testing
