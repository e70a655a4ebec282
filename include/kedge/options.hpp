// Everything that can be configured, with its default in place. share/kedge/kedge.toml documents each field.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/error.hpp"

namespace kedge {

/// Severities of log lines: debug, info, warning, error; and off.
enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// What finalize does with the node-local files.
enum class OnExit : std::uint8_t {
  keep,                  ///< the next start continues from them
  remove_if_persistent,  ///< they are removed if the newest commit is on the prefix
  /// They are removed, and so is the record that commits exist: the next start begins with what is on the prefix, or
  /// from zero.
  remove,
};

/// How much of the selected commit open verifies. What is loaded is checked in any case, and restore reads each byte
/// once, whether this is all or loaded.
enum class Verify : std::uint8_t {
  /// Every byte of its containers and parity, and of commits that are kept beside it: damage is repaired, or another
  /// commit used, before the program sees anything. With background work, what nothing was rebuilt from is read there.
  all,
  /// Each rank's own container is read once: what is loaded, as it is loaded, and the rest by close; more than 16 MiB
  /// of that in the background, where work is done there. After close has thrown corrupt, open again, in this process
  /// or the next.
  loaded,
  headers,  ///< headers alone: what is not loaded, and parity, is not checked
};

/// How large writes reach block storage or a parallel filesystem.
enum class Io : std::uint8_t {
  automatic,  ///< the faster one, measured where data is synced; buffered in stores without store.durable
  buffered,   ///< through the page cache
  direct,     ///< O_DIRECT with io_uring, where the system supports it
};

/// When GPU memory goes to a store on a disk by GPUDirect Storage (NVIDIA's cuFile).
enum class Gds : std::uint8_t {
  automatic,  ///< where cuFile has a native path for the store's filesystem
  off,        ///< never
  on,         ///< as automatic, and also where cuFile itself copies through host memory (its compatibility mode)
};

/// When commits are protected and flushed.
enum class PipelineMode : std::uint8_t {
  automatic,   ///< as background, where that is possible, else as inline_
  inline_,     ///< before commit returns
  background,  ///< by a thread, while the application goes on; a warning says if that is not possible
};

/// How the threads that protect and flush in the background send to each other.
enum class Messages : std::uint8_t {
  automatic,  ///< by MPI if several threads may call it; over TCP if one may; else commits are protected inline
  mpi,        ///< by the application's message layer only; else inline
  tcp,        ///< over TCP, at any level of thread support
};

/// How create behaves when pipeline.max_pending commits are pending.
enum class WhenFull : std::uint8_t {
  block,  ///< create waits
  skip,   ///< flushes that have not begun are left out, then it waits for the rest
  fail,   ///< create throws no_space
};

/// Whose files on a prefix are trusted. Files that anyone else can write are refused.
enum class Trust : std::uint8_t {
  self,   ///< this user's, in directories that no one else can write
  group,  ///< as self, and also directories that groups of this process may write
  any,    ///< anyone's
};

/// How ranks of different failure domains protect each other. The numbers are on disk: do not change them.
enum class Scheme : std::uint8_t {
  /// Xor over three failure domains or more, partner over two, single over one and where one has more than half of the
  /// ranks. Never on disk.
  automatic = 0,
  single = 1,  ///< no protection: survives only the death of processes
  /// A full copy on one other failure domain, from which the commit is found even if none of its containers can be
  /// read. No failure domain may have more than half of the ranks.
  partner = 2,
  /// Parity over a set of about redundancy.set_size ranks: one lost member of each set can be rebuilt. No failure
  /// domain may have more than half of the ranks.
  xor_ = 3,
  /// Reed-Solomon: `redundancy.parity` (m) lost members of each set can be rebuilt; m = 1 is xor. No failure domain may
  /// have more than floor(ranks / (m + 1)) of the ranks, and set_size must be above m.
  rs = 4,
};

/// "auto", "single", "partner", "xor", "rs".
[[nodiscard]] std::string_view to_string(Scheme scheme) noexcept;

/// Options of an engine. All ranks must set the same values, except for `store.path`, `pipeline.cores`, `deadline` and
/// `log`.
struct Options {
  /// Name of the run: 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot. If the communicator has a name too and it
  /// is a different one, the run is `<run>.<name>`, at most 64 characters: each part of a job then has its own run.
  /// Empty: the communicator's name, or `main` if it has none; then, if the prefix has checkpoints of exactly one run,
  /// that run is continued.
  std::string run;

  /// Whatever the results depend on besides the state, in the program's words: its input, its version. Recorded at the
  /// start; once there are commits, a start with a different one throws `mismatch`. Empty: not compared.
  std::string fingerprint;
  /// Input files whose content belongs to the fingerprint; rank 0 reads them when the engine starts, while the
  /// others wait (comm.timeout_s).
  std::vector<std::string> fingerprint_files;

  /// When the job is going to be ended: seconds since 1970, or an ISO 8601 date and time ("2026-11-25T22:00:00Z";
  /// without a zone, rank 0's local time). need_checkpoint() says yes in time for a last checkpoint, and should_exit()
  /// turns true. Empty: SLURM_JOB_END_TIME, if it is set; "none": never. Only rank 0's counts.
  std::string deadline;

  /// The node-local store, to which every checkpoint is written first.
  struct Store {
    /// Node-local directory; `{node}` becomes the node's name. Empty: the first of /dev/shm, $SLURM_TMPDIR,
    /// $TMPDIR and /tmp that is in memory, writable, and at least 1/16 of the machine's memory; otherwise the first
    /// other one that is writable; a smaller one in memory last.
    std::string path;
    /// Complete commits kept per rank.
    std::uint32_t keep = 1;
    /// Maximum number of bytes that this run's ranks on one node may use together on its store; 0 = no limit.
    std::uint64_t quota_bytes = 0;
    /// Sync all data before commit returns, so that the commit survives a power loss (block storage only).
    bool durable = false;
    /// How long a start waits for processes of an earlier start to exit.
    double lock_timeout_s = 30.0;
    OnExit on_exit = OnExit::keep;  ///< How finalize treats the node-local files.
    /// Number of threads that copy a large region, the calling one included; 0 = automatic: the machine's cores per
    /// rank, at most 4. They do not call MPI.
    std::uint32_t copy_threads = 0;
    /// How large writes reach a store on block storage.
    Io io = Io::automatic;
  } store;  ///< The node-local store.

  /// The parallel filesystem.
  struct Persistent {
    /// The prefix: a directory on the parallel filesystem, the same for all ranks.
    std::string path = "./checkpoints";
    /// Flush every Nth commit to the prefix, and the newest in finalize; after an open of a commit that is not
    /// persistent, the next one. 0 = none (wait(tag, Level::persistent) flushes on demand).
    std::uint64_t every = 10;
    /// Number of this run's commits kept on the prefix, not counting pinned ones; 0 = all.
    std::uint64_t keep = 0;
    /// Write the newest commit's directory name to `<prefix>/latest`, for people and scripts.
    bool latest = true;
    /// Permission bits of tag directories, octal, less the umask; files get the same without execute bits.
    std::string mode = "0755";
    /// Whether to flush routed files as plain files too, for other programs: `files/<rank / 1000>/rank-<rank>/<name>`
    /// in the tag directory. They take up their space twice, and Kedge never reads them.
    bool plain_routed = false;
    Trust trust = Trust::self;  ///< Whose files on a prefix are trusted.
    /// How containers are written to the prefix.
    Io io = Io::automatic;
    /// Maximum number of bytes per second that a node writes to the prefix; 0 = no limit.
    std::uint64_t bandwidth_limit = 0;
    /// In the background, how often a flush that failed for lack of space or with an I/O error is tried
    /// again, after 1, 2, 4, ... seconds, at most 60 each; until a newer commit waits. 0 = not at all.
    std::uint32_t retries = 3;
    /// Maximum number of shards in the manifest's HDF5 view; with more there is no view, all data is in the containers.
    std::uint64_t view_limit = 100'000;
  } persistent;  ///< The parallel filesystem.

  /// How ranks of different failure domains protect each other.
  struct Redundancy {
    Scheme scheme = Scheme::automatic;  ///< How ranks of a set protect each other.
    /// Number of members of a redundancy set to aim for, 2 to 32; a set is larger where the ranks cannot be divided
    /// otherwise. Larger sets need less space and more often lose two.
    std::uint32_t set_size = 8;
    /// With scheme rs: how many members of each set may be lost, 1 to 4; 1 is the same as xor. Must be below set_size.
    std::uint32_t parity = 2;
    /// Protect every Nth commit; 0 = none (wait(tag, Level::protected_) protects on demand).
    std::uint64_t every = 1;
    /// Bytes per message when protecting and rebuilding, 4 KiB to 16 MiB; 0 = automatic: chosen by the size of the set,
    /// so that a rank's messages in flight take at most 13 MiB. A value with which its buffers would take more than
    /// 1 GiB is reduced.
    std::uint64_t piece_bytes = 0;
    /// Number of pieces that a rank has in flight at once, 1 to 64.
    std::uint32_t depth = 4;
    /// Maximum number of bytes per second that a node sends while it protects in the background; 0 = no limit.
    std::uint64_t bandwidth_limit = 0;
  } redundancy;  ///< Protection.

  /// How commits come to higher levels than local.
  struct Pipeline {
    PipelineMode mode = PipelineMode::automatic;  ///< When commits are protected and flushed.
    /// In the background, number of commits that may be on their way to higher levels at once, the one being written
    /// included: create waits until fewer are. The stores keep so many containers beside those of store.keep.
    std::uint32_t max_pending = 1;
    /// How create behaves beyond max_pending.
    WhenFull when_full = WhenFull::block;
    /// In the background, cores of each node on which the threads that protect and flush run, such as "0,64-67"; empty:
    /// wherever the process may run, at lower priority than the application.
    std::string cores;
    /// In the background, how these threads send to each other.
    Messages messages = Messages::automatic;
    /// Over TCP, the network that all nodes share: names of interfaces ("ib0") or subnets ("10.1.0.0/16"), with commas
    /// between, the first that works; empty: the fastest of rank 0's interfaces that works.
    std::string interface;
  } pipeline;  ///< Protecting and flushing.

  /// How a start takes up earlier checkpoints.
  struct Open {
    Verify verify = Verify::all;  ///< How much of the selected commit open verifies.
    /// Start a new run, ignoring the earlier checkpoints: none of them is opened or removed, in this start or later
    /// ones. Set it for one start only: every start with it begins another run.
    /// As every start, it waits for one that is still at work in the same stores (`store.lock_timeout_s`).
    bool fresh = false;
    /// Continue from commits in the stores of a run that the prefix has no record of, or of a run whose prefix was
    /// moved and whose former path cannot be read.
    bool adopt_store = false;
    /// Continue from the run's checkpoints even if the fingerprint differs, and record the new one.
    bool accept_fingerprint = false;
    /// Continue from checkpoints of another task of the job array, another part of the launch, or an engine that
    /// already finished in this process: for tasks and engines that each continue from the one before.
    bool chained = false;
  } open;  ///< How a start takes up earlier checkpoints.

  /// When need_checkpoint() returns true.
  struct Schedule {
    /// need_checkpoint() returns true at every Nth call, and only then; 0 = as seconds and overhead say, whichever is
    /// first.
    std::uint64_t every = 0;
    /// True when the last checkpoint, committed or failed, was this long ago; 0 = disabled.
    double seconds = 3600;
    /// True as soon as checkpoints cost at most this share of the run time, as measured: 0.01 is 1 %. The first call is
    /// due, since nothing was measured yet. 0 = disabled; with every and seconds 0 too, never.
    double overhead = 0.01;
  } schedule;  ///< When need_checkpoint() returns true.

  /// How a job that is to end comes to its last checkpoint.
  struct Exit {
    /// Signals that ask the job to end, instead of killing it: SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU. One
    /// rank that gets one is enough. Handlers that the program installed before the engine are still called.
    std::vector<std::string> signals;
    /// How long before the deadline the last checkpoint is to be done: what the program needs for its own end.
    double margin_s = 30.0;
    /// How long after a signal the job is killed; 0 = not known.
    double grace_s = 0.0;
  } exit;  ///< How a job that is to end comes to its last checkpoint.

  /// Memory of GPUs.
  struct Device {
    /// Copies GPU memory straight into the store's files (DMA) where the store is in memory and most of a checkpoint
    /// comes from GPUs. Files that keep their size are page-locked for this, and stay so until finalize. False: copies
    /// through up to 64 MiB of pinned buffers.
    bool direct = true;
    /// `save` only copies within the GPU, to memory that Kedge allocates and keeps until finalize; `commit` returns at
    /// level snapshot, and the copies are written to the store in the background. Without background work, and where
    /// names, types or shapes of regions are not the commit before's, the checkpoint is local when `commit` returns.
    /// If GPU memory runs out, the region is written to the store in `save`. Not yet run on a GPU.
    bool snapshot = false;
    /// Writes regions of 4 MiB or more from GPU memory to a store on a disk by GPUDirect Storage, without a copy in
    /// host memory, where libcufile is installed and the GPU computes checksums. Otherwise, and where that fails for
    /// another reason than the disk's, through pinned buffers. The file has the same bytes. Off until it has been run
    /// on machines with the driver nvidia-fs.
    Gds gds = Gds::off;
  } device;  ///< Memory of GPUs.

  /// Which ranks share a node, and what fails together.
  struct Topology {
    /// Simulates nodes of this many consecutive ranks each; 0 = the real nodes.
    std::uint32_t ranks_per_node = 0;
    /// Which ranks fail together: `node`, or `env:NAME`: all ranks with the same value of this environment variable.
    std::string failure_domain = "node";
  } topology;  ///< Nodes and failure domains.

  /// Messages between ranks.
  struct Comm {
    /// How long a collective call waits for the other ranks before it throws `timeout`.
    double timeout_s = 300.0;
  } comm;  ///< Messages between ranks.

  /// Which lines are logged, and where.
  struct Log {
    LogLevel level = LogLevel::info;  ///< The lowest severity that is logged.
    /// Called with each line, on the rank that logs it, instead of writing to standard error; with pipeline.mode
    /// background also by another thread than the application's, perhaps at the same time. Must not throw.
    std::function<void(LogLevel, std::string_view)> sink;
  } log;  ///< The log.

  /// Events for programs: one JSON object a line (share/doc/events.md).
  struct Events {
    /// Where the first rank of each node writes them: a directory, which is created, or with `{node}` in it a file.
    /// `{node}` becomes the node's name, `{run}` the run's. Empty: nowhere.
    std::string path;
    /// A file that would become larger is renamed to `<file>.1`, replacing the one before; 0 = never.
    std::uint64_t max_bytes = std::uint64_t{64} << 20U;
  } events;  ///< Structured events.

  /// The first error that load() found, if any; Engine's constructor reports it on all ranks.
  std::optional<Failure> load_failure;

  /// Local; never throws. Defaults, then the TOML file (KEDGE_CONFIG, else ./kedge.toml if it exists), then
  /// environment variables KEDGE_<SECTION>_<KEY>. The first error is kept in `load_failure`: a bad value with its file,
  /// line and option; an unknown key, or unknown variable that begins with KEDGE_, with a suggestion. Names that module
  /// files use (KEDGE_ROOT, KEDGE_PREFIX, KEDGE_LIB and the like) are ignored.
  [[nodiscard]] static Options load() noexcept;
};

}  // namespace kedge
