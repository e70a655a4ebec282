// Everything that can be configured, with its default in place. share/kedge/kedge.toml documents each field.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/error.hpp"

namespace kedge {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// What happens to the node-local files in finalize.
enum class OnExit : std::uint8_t { keep, remove_if_persistent, remove };

/// How much of a container is read before it is offered for recovery.
enum class Verify : std::uint8_t { all, headers };

/// How large writes reach a store that is not memory.
enum class StoreIo : std::uint8_t {
  automatic,  ///< whichever is faster, measured when a run with store.durable starts; else through the page cache
  buffered,   ///< through the page cache
  direct,     ///< past it, by io_uring, where the system lets it
};

/// Whose files on a prefix are believed. Beyond that, what others can write is refused.
enum class Trust : std::uint8_t {
  self,   ///< this user's, in directories that no others can write
  group,  ///< also those of this process's groups, in directories that these groups can write
  any,    ///< anybody's
};

/// How ranks of different failure domains protect each other. The numbers are on disk: do not change them.
enum class Scheme : std::uint8_t {
  automatic = 0,  ///< xor over three failure domains or more, partner over two, single over one; never on disk
  single = 1,     ///< no protection: survives the death of processes only
  partner = 2,    ///< a full copy on another failure domain
  xor_ = 3,       ///< parity over a set of ranks: one lost member of each set can be made again
  rs = 4,         ///< Reed-Solomon: as many lost members of each set as `redundancy.parity` says
};

/// "auto", "single", "partner", "xor", "rs".
[[nodiscard]] std::string_view to_string(Scheme scheme) noexcept;

/// Options of an engine. All ranks must give the same values, except for `store.path` and `log`.
struct Options {
  /// Name of the run: 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot. Empty: derived from the
  /// canonical prefix and the communicator's name, so a job that is started again finds its own checkpoints.
  std::string run;

  struct Store {
    /// Node-local directory; `{node}` becomes the node's name. Empty: the best one found (memory first).
    std::string path;
    /// Complete commits kept per rank.
    std::uint32_t keep = 1;
    /// Bytes that this run may use on this node's store by this rank; 0 is no limit.
    std::uint64_t quota_bytes = 0;
    /// Sync everything before a commit returns, so that it survives a power loss (block storage only).
    bool durable = false;
    /// How long a start waits for processes of an earlier start to be gone.
    double lock_timeout_s = 30.0;
    OnExit on_exit = OnExit::keep;
    /// Threads that copy a large region together, the calling one included; 0: as many as there are cores for each
    /// rank of the machine, 4 at most. They do not call MPI.
    std::uint32_t copy_threads = 0;
    StoreIo io = StoreIo::automatic;
  } store;

  struct Persistent {
    /// The prefix: directory on the parallel filesystem, the same for all ranks.
    std::string path = "./checkpoints";
    /// Every Nth commit is moved to the prefix; 0 is none (wait(tag, Level::persistent) does it on demand).
    std::uint64_t every = 10;
    /// Commits of this run kept on the prefix, pinned ones not counted; 0 keeps all.
    std::uint64_t keep = 0;
    /// After each commit there, `<prefix>/latest` names its directory, for people and scripts.
    bool latest = true;
    /// Permission bits of tag directories in octal, less the umask; files have the same without execution.
    std::string mode = "0755";
    Trust trust = Trust::self;
    /// Above so many shards of global arrays the manifest has no HDF5 view of them; the containers have all the data.
    std::uint64_t view_limit = 100'000;
  } persistent;

  struct Redundancy {
    Scheme scheme = Scheme::automatic;
    /// Members of a redundancy set at most, 2 to 32; more make parity smaller and the loss of two more likely.
    std::uint32_t set_size = 8;
    /// With scheme rs: how many members of each set may be lost together, 1 to 4; 1 is xor. Sets are larger than this.
    std::uint32_t parity = 2;
    /// Every Nth commit is protected; 0 is none (wait(tag, Level::protected_) does it on demand).
    std::uint64_t every = 1;
    /// Bytes of one message while parity is made or lost members are made again, 4096 to 16 MiB; 0 chooses by the set's
    /// size, so that a rank's messages under way take 13 MiB at most.
    std::uint64_t piece_bytes = 0;
    /// Pieces under way at once, 1 to 64.
    std::uint32_t depth = 4;
  } redundancy;

  struct Open {
    Verify verify = Verify::all;
  } open;

  struct Schedule {
    /// need_checkpoint() says yes at every Nth call; 0 is never.
    std::uint64_t every = 1;
  } schedule;

  struct Topology {
    /// Simulates nodes of this many consecutive ranks each; 0 takes the real ones.
    std::uint32_t ranks_per_node = 0;
    /// What fails together: `node`, or `env:NAME` for all ranks with the same value of this environment variable.
    std::string failure_domain = "node";
  } topology;

  struct Comm {
    /// How long a collective call waits for the other ranks before it throws `timeout`.
    double timeout_s = 300.0;
  } comm;

  struct Log {
    LogLevel level = LogLevel::info;
    /// Receives each line instead of standard error, on the rank that logs it. Must not throw.
    std::function<void(LogLevel, std::string_view)> sink;
  } log;

  /// What load() found wrong, if anything: reported by Engine's constructor on all ranks.
  std::optional<Failure> load_failure;

  /// Local; never throws. Defaults, then the TOML file (KEDGE_CONFIG, else ./kedge.toml if it exists), then
  /// environment variables KEDGE_<SECTION>_<KEY>. What is wrong is kept in `load_failure`.
  [[nodiscard]] static Options load() noexcept;
};

}  // namespace kedge
