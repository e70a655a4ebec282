// Everything that can be configured, with its default in place. The comments of options are written by
// share/kedge/configuration from share/kedge/kedge.toml: change them there.
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

/// Whether open takes checkpoints that another number of ranks saved.
enum class OtherRanks : std::uint8_t {
  accept,  ///< it does; State and load_all load what each rank needs
  refuse   ///< they count as unrecoverable
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

/// How GPU memory reaches the node-local store.
enum class DevicePath : std::uint8_t {
  automatic,  ///< copied straight into a store in memory where that pays; through pinned buffers to a disk
  buffers,    ///< always through pinned buffers
  gds,        ///< experimental: as automatic, and to a disk by GPUDirect Storage (NVIDIA's cuFile)
};

/// How one start goes about earlier checkpoints.
enum class StartMode : std::uint8_t {
  continue_,  ///< continues from them; refused where it would be a guess
  fresh,      ///< begins a new run, and leaves them where they are
  /// Continues from commits in the stores of a run that the prefix has no record of, or whose prefix was moved and
  /// whose former path cannot be read.
  adopt,
  accept,            ///< continues although the fingerprint differs, and records the new one
  adopt_and_accept,  ///< adopt and accept in one start
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
  /// Name of the run: 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot. A job that is started again with the same
  /// name on the same prefix finds its checkpoints. If the communicator has a name too (MPI_Comm_set_name) and it is a
  /// different one, the run is `<run>.<name>`: each part of a job then has its own run. Empty: the communicator's name,
  /// or main if it has none. If the prefix has checkpoints of exactly one run, a job without any name continues that.
  std::string run;

  /// What the results depend on besides the state, in one line: the input, the program's version. It is recorded at the
  /// start; once there are commits, a start with another one is refused. Empty: not compared.
  std::string fingerprint;
  /// Input files whose content belongs to the fingerprint, e.g. ["input.nml", "mesh.dat"]; in the environment separated
  /// by colons.
  std::vector<std::string> fingerprint_files;

  /// When the job is going to be ended: seconds since 1970, or a date and time ("2026-11-25T22:00:00Z"; without a zone,
  /// local time). need_checkpoint() returns true so early that a last checkpoint is done by then, and should_exit()
  /// returns true. Empty: SLURM_JOB_END_TIME, where Slurm sets it; "none": never. Only rank 0's value counts.
  std::string deadline;

  /// How one start goes about earlier checkpoints. continue: it continues from the newest that can be recovered, and is
  /// refused where that would be a guess. fresh: it begins a new run in the same place; none of the earlier checkpoints
  /// is opened or removed, in this start or later ones. adopt: it continues from commits in the node-local stores of a
  /// run that the prefix has no record of, because it was removed, or of a run whose prefix was moved and whose former
  /// path cannot be read. accept: it continues although the fingerprint differs, and records the new one.
  /// adopt_and_accept: both. All but continue are for one start: set KEDGE_START in the environment of that start; in a
  /// file they are refused, since they would act at every start. As every start, a fresh one waits for one that is
  /// still at work in the same stores (store.lock_timeout_s).
  StartMode start = StartMode::continue_;

  /// How large writes reach block storage and the prefix: buffered (through the page cache), direct (O_DIRECT with
  /// io_uring, where the system supports it) or auto. auto takes the faster of the two: for a store with store.durable
  /// it is measured at the start with 16 MiB, for the prefix with up to 40 MiB before the first flush of 64 MiB or
  /// more; a store without store.durable is written buffered. The log says which one is used.
  Io io = Io::automatic;

  /// The node-local store, to which every checkpoint is written first.
  struct Store {
    /// A directory that is local to each node. `{node}` becomes the node's name; in all paths ~ and $NAME are expanded.
    /// Empty: the first of /dev/shm, $SLURM_TMPDIR, $TMPDIR and /tmp that is in memory, writable, and at least 1/16 of
    /// the machine's memory (Docker's default of 64 MB is not). If there is none, the first other one that is writable;
    /// a smaller one in memory comes last.
    std::string path;
    /// Number of commits kept per rank. While a checkpoint is written, each rank needs space for one more; with
    /// redundancy.every above 1, for two.
    std::uint32_t keep = 1;
    /// Maximum number of bytes that this run may use on one node, all its ranks there together, for example "64 GiB"; 0
    /// = no limit but what is free: on the filesystem and, for a store in memory, in the job's memory cgroup and on the
    /// machine.
    std::uint64_t quota_bytes = 0;
    /// Sync all data before commit returns, so that the commit survives a power loss. For block storage only: memory
    /// loses it in any case.
    bool durable = false;
    /// How many seconds a start waits for processes of an earlier start to exit.
    double lock_timeout_s = 30.0;
    /// What finalize does with the node-local files: keep, remove_if_persistent (removed if the newest commit is on the
    /// prefix) or remove (always, with the record that commits exist: the next start begins with what is on the prefix,
    /// or from zero). Where commits could not be recovered nothing is removed.
    OnExit on_exit = OnExit::keep;
    /// Number of threads that copy a large region, 1 to 64; 0 = automatic: the machine's cores per rank, at most 4.
    std::uint32_t copy_threads = 0;
  } store;  ///< The node-local store.

  /// The parallel filesystem.
  struct Persistent {
    /// The prefix: a directory, the same for all ranks.
    std::string path = "./checkpoints";
    /// Flush every Nth commit to the prefix, where it survives the allocation, and the newest at finalize; after an
    /// open of a commit that is not there, also the next one. 0 = none.
    std::uint64_t every = 10;
    /// Number of commits kept there, not counting pinned ones; 0 = all.
    std::uint64_t keep = 0;
    /// Permission bits of tag directories, octal, less the umask; files get the same without execute bits.
    std::string mode = "0755";
    /// Also flush routed files as plain files, for other programs, below files/ in the tag directory. They take up
    /// their space twice; kedge extract writes them without that.
    bool plain_routed = false;
    /// Whose files on a prefix are trusted: self (your own), group (also those of your groups) or any.
    Trust trust = Trust::self;
    /// Maximum number of bytes per second that a node writes to the prefix, such as "500 MiB"; 0 = no limit.
    std::uint64_t bandwidth_limit = 0;
    /// In the background, how many times at most a flush that failed for lack of space or with an I/O error is tried
    /// again, 0 to 1000: after 1, 2, 4, ... seconds, at most 60 each. It ends early when a newer commit waits, or the
    /// application in create, open, pin or finalize.
    std::uint32_t retries = 3;
  } persistent;  ///< The parallel filesystem.

  /// How ranks of different failure domains protect each other.
  struct Redundancy {
    /// auto (xor over three or more failure domains, partner over two, single over one and, with a warning, where one
    /// has more than half of the ranks), single (no protection), partner (a full copy on another node), xor (parity
    /// over a set of ranks; one lost member of each set can be rebuilt) or rs (Reed-Solomon: as many lost members as
    /// `parity`).
    Scheme scheme = Scheme::automatic;
    /// Largest number of members of a redundancy set, 2 to 32. Sets are as equal as possible (9 ranks on 9 nodes with
    /// 8: sets of 5 and 4), with at most one member in each failure domain; they are larger only where smaller ones
    /// would have too few members for the scheme. Larger sets need less space for parity: 1/(members - 1) of the
    /// checkpoint for xor, parity/(members - parity) for rs.
    std::uint32_t set_size = 8;
    /// With scheme rs: how many members of each set may be lost, 1 to 4, and fewer than set_size; 1 is the same as xor.
    std::uint32_t parity = 2;
    /// Protect every Nth commit; 0 = none.
    std::uint64_t every = 1;
    /// Maximum number of bytes per second that a node sends while it protects commits in the background, such as "1
    /// GiB"; 0 = no limit.
    std::uint64_t bandwidth_limit = 0;
  } redundancy;  ///< Protection.

  /// How commits come to higher levels than local.
  struct Pipeline {
    /// When commits are protected and flushed: in the background, where commit returns when every rank's container is
    /// sealed and a thread of each rank goes on while the application computes, or inline, before commit returns. Under
    /// MPI_Init, or MPI_Init_thread with MPI_THREAD_SINGLE, background is not possible unless messages = "tcp": auto is
    /// inline then, and background too, with a warning.
    PipelineMode mode = PipelineMode::automatic;
    /// In the background, number of commits that may be on their way to higher levels at once, the one being written
    /// included: create waits until fewer are. With 1 nothing goes on while a checkpoint is written; with 2 it is
    /// written while the one before is still flushed, and the stores take one more container.
    std::uint32_t max_pending = 1;
    /// What create does when so many are: block (it waits) or fail (it throws no_space, and the application goes on
    /// without this checkpoint).
    WhenFull when_full = WhenFull::block;
    /// In the background, cores of each node on which the threads that protect and flush run, such as "0,64-67"; empty:
    /// wherever the process may run, at lower priority than the application.
    std::string cores;
    /// In the background, how these threads send to each other: auto (by MPI with MPI_THREAD_MULTIPLE; over TCP with
    /// MPI_THREAD_FUNNELED or MPI_THREAD_SERIALIZED and over torch.distributed), mpi (by the application's message
    /// layer only; inline where several threads may not call it) or tcp (over TCP, also with MPI_THREAD_SINGLE).
    Messages messages = Messages::automatic;
    /// Over TCP, the network on which all nodes of the job reach each other: names of interfaces ("ib0") or subnets
    /// ("10.1.0.0/16"), with commas between; the first that works is used. Empty: within one node the loopback
    /// interface, else the fastest of rank 0's interfaces that works. At most four are tried; a line at the start says
    /// which one it is. Each rank listens there, at an ephemeral port.
    std::string interface;
  } pipeline;  ///< Protecting and flushing.

  /// How a start takes up earlier checkpoints.
  struct Open {
    /// How much of the selected checkpoint open verifies: all, loaded or headers. What is loaded is checked in any
    /// case. With all, every byte is, before anything is loaded: what is damaged is rebuilt, or the checkpoint before
    /// is taken. restore (C++) does that while it loads, so that each byte is read once. loaded is for programs that
    /// call open, load and close: a rank's own data is read once. What is loaded is checked as it is loaded, the rest
    /// by close (more than 16 MiB of it in the background, where work is done there). If close throws corrupt, open
    /// again, in this process or the next: that repairs the checkpoint or steps back. With headers, what is not loaded,
    /// and parity, is not checked.
    Verify verify = Verify::all;
    /// Continue from checkpoints of another task of the job array, another part of the launch, or an engine that
    /// already finished in this process: for tasks and engines that each continue from the one before (--array=1-10%1).
    /// Without this, such a start is refused.
    bool chained = false;
    /// Whether a job continues from checkpoints that another number of ranks saved: accept or refuse. State and
    /// load_all then load what each rank needs of them.
    OtherRanks other_ranks = OtherRanks::accept;
    /// Memory that a rank takes for messages and blocks while it loads what other ranks saved, beside what is loaded.
    std::uint64_t buffer_bytes = std::uint64_t{16} << 20U;
  } open;  ///< How a start takes up earlier checkpoints.

  /// When need_checkpoint() returns true.
  struct Schedule {
    /// need_checkpoint() returns true at every Nth call, and only then; 0 = as seconds and overhead say, whichever is
    /// first.
    std::uint64_t every = 0;
    /// need_checkpoint() returns true when the last checkpoint, committed or failed, was this many seconds ago; 0 =
    /// disabled.
    double seconds = 3600;
    /// need_checkpoint() returns true as soon as checkpoints cost at most this share of the run time, as measured (0.01
    /// is 1 %); 0 = disabled. The first call is due.
    double overhead = 0.01;
  } schedule;  ///< When need_checkpoint() returns true.

  /// How a job that is to end comes to its last checkpoint.
  struct Exit {
    /// Signals that ask the job to end, instead of killing it: of SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and
    /// SIGXCPU. One rank that gets one is enough: need_checkpoint() and should_exit() return true on all. Handlers that
    /// the program installed before the engine are still called. In the environment separated by colons.
    std::vector<std::string> signals;
    /// How long before the deadline the last checkpoint is to be done: what the program needs for its own end.
    double margin_s = 30.0;
    /// How long after a signal the job is killed; 0 = not known. Where the time does not suffice for the parallel
    /// filesystem, the last checkpoint is only protected, or only local.
    double grace_s = 0.0;
  } exit;  ///< How a job that is to end comes to its last checkpoint.

  /// Memory of GPUs.
  struct Device {
    /// How GPU memory reaches the store. auto: straight into the store's files (DMA) where the store is in memory and
    /// most of a checkpoint comes from GPUs, otherwise through up to 64 MiB of pinned buffers. Files that keep their
    /// size are page-locked for this, and stay so until finalize. buffers: always through pinned buffers. gds: as auto,
    /// and regions of 4 MiB or more go to a store on a disk by GPUDirect Storage (NVIDIA's cuFile), where libcufile is
    /// installed and the GPU computes the checksums: without a copy in host memory where cuFile has a native path to
    /// the store's filesystem. A warning says where cuFile cannot be used. Files have the same bytes in each case. gds
    /// is experimental: it has not been run with the driver nvidia-fs yet.
    DevicePath path = DevicePath::automatic;
    /// `save` only copies within the GPU, to memory that Kedge allocates and keeps until finalize; `commit` returns at
    /// level snapshot, which does not survive the process, and the copies are written to the store in the background.
    /// Without background work (pipeline.mode), at the first checkpoint, and where names, types or shapes of regions
    /// differ from the commit before, the checkpoint is local when `commit` returns, as if the option were off. If GPU
    /// memory runs out, the region is written to the store in `save`. Host memory is not affected. Experimental: no
    /// application has run it on a GPU yet.
    bool snapshot = false;
  } device;  ///< Memory of GPUs.

  /// Which ranks share a node, and what fails together.
  struct Topology {
    /// What fails together: node, or env:NAME for all ranks with the same value of this environment variable (a rack, a
    /// power supply).
    std::string failure_domain = "node";
  } topology;  ///< Nodes and failure domains.

  /// Messages between ranks.
  struct Comm {
    /// How many seconds a collective call waits for the other ranks before it throws `timeout`. Time in which the job
    /// is suspended does not count.
    double timeout_s = 300.0;
  } comm;  ///< Messages between ranks.

  /// Which lines are logged, and where.
  struct Log {
    /// The lowest severity that is logged: debug, info, warning, error or off.
    LogLevel level = LogLevel::info;
    /// Called with each line, on the rank that logs it, instead of writing to standard error; with pipeline.mode
    /// background also by another thread than the application's, perhaps at the same time. Must not throw.
    std::function<void(LogLevel, std::string_view)> sink;
  } log;  ///< The log.

  /// Events for programs: one JSON object a line (share/doc/events.md).
  struct Events {
    /// Where the first rank of each node writes them. A directory, which is created, for files
    /// `<user>-<job>-<run>-<node>.jsonl`; or, with `{node}` in it, a file; `{node}` becomes the node's name, `{run}`
    /// the run's, `{user}` the user's number and `{job}` the batch system's job id, or nojob. Empty: nowhere.
    std::string path;
    /// A file that would become larger is renamed to `<file>.1`, replacing the one before; at least "4 KiB"; 0 = never.
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
