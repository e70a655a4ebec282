// The engine: create, save, commit to write a checkpoint; open, load, close to read one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/attributes.hpp"
#include "kedge/communicator.hpp"
#include "kedge/counters.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/selection.hpp"
#include "kedge/types.hpp"
#include "kedge/want.hpp"

namespace kedge {

class State;
struct ForBindings;

namespace engine {
class EngineImpl;
struct EngineEnvironment;
}  // namespace engine

/// Result of route_out and route_in.
struct Routed {
  std::string path;  ///< empty if status is not ok
  Status status;     ///< of the call
};

/// One region of the open checkpoint.
struct RegionInfo {
  std::string name;                   ///< as given to save or route_out
  DataType dtype = DataType::opaque;  ///< of one element
  Shape shape;                        ///< on this rank
  Placement placement;                ///< in the whole job
  std::uint64_t size_bytes = 0;       ///< on this rank
  bool routed = false;                ///< a file: read it with route_in
  std::string members;                ///< of structs, as kedge::members describes them; empty: none, or not described
};

/// The open checkpoint.
struct CheckpointInfo : CommitHead {
  LogicalRank logical_rank;                          ///< of the container that this process loads
  RecoverySource source = RecoverySource::in_place;  ///< the costliest that any rank needed
  std::uint64_t total_bytes = 0;                     ///< container bytes of all ranks
  Attributes attributes;                             ///< as given to create
};

/// One run's checkpoint engine. share/doc/contracts/calls.md describes waiting, failures and what all calls share.
///
/// All ranks must make the calls marked COLLECTIVE in the same order, from one thread at a time. Each call succeeds on
/// all ranks or throws Error with the same code on all. Ranks that make different calls get bad_state. Only `timeout`
/// (a rank did not answer within comm.timeout_s) and `rank_failed` (a rank died) may reach some ranks while others
/// return. After either, after `device_failed`, and after `busy` because of a later start, the engine is dead: every
/// call that communicates, saves or loads returns or throws bad_state.
///
/// save, load, route_out and route_in are local and never throw. Their Status may be ignored: the engine remembers the
/// first failure, and the next commit or close throws it on every rank. Only when no checkpoint is being written or
/// read does their Status (bad_state) alone report the failure. These four and level may be called from several
/// threads.
class Engine {
 public:
  /// COLLECTIVE. Starts the run's next incarnation: checks that all ranks have the same options, determines the run and
  /// which ranks share a node, and takes over the run's node-local stores. Waits up to store.lock_timeout_s for
  /// processes of an earlier start that still use a store; touches no container until all stores are locked. Makes a
  /// few small files on the prefix; reads no checkpoint data.
  ///
  /// Throws invalid_argument (a bad option; options that differ between ranks; a prefix that is not one filesystem;
  /// stores shared by failure domains; a message layer whose reductions give wrong results), mismatch (the checkpoints
  /// here are of several runs, of another input or another computation, or in stores that the prefix does not know),
  /// corrupt (checkpoints exist, but their run is unknown), no_space, io or not_found (prefix or store cannot be used),
  /// busy (another start of this run is alive, or another engine of this process works on it).
  Engine(std::unique_ptr<Communicator> communicator, Options options);
  /// COLLECTIVE. Over all ranks of an MPI communicator, see kedge::mpi: `Engine engine(MPI_COMM_WORLD, options)` with
  /// kedge/mpi.hpp included.
  template <class Ranks>
  requires requires(const Ranks& ranks) { CommunicatorOf<Ranks>::make(ranks); }
  Engine(const Ranks& ranks, Options options) : Engine(CommunicatorOf<Ranks>::make(ranks), std::move(options)) {}
  /// Local: never communicates, safe after MPI_Finalize. Call finalize first to shut down normally: the destructor ends
  /// background work, waiting at most 10 s for a write that has begun. Each commit keeps its level; one that is still a
  /// snapshot is lost. Unless this engine ended by an error or open.chained is set, a later engine of this process that
  /// would continue the run is refused (mismatch).
  ~Engine();
  Engine(Engine&&) noexcept;             ///< Local.
  Engine& operator=(Engine&&) noexcept;  ///< Local. The engine that is replaced is destroyed.
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// COLLECTIVE, one small all-reduce. True on all ranks when rank 0 finds a checkpoint due: at every schedule.every-th
  /// call; if that is 0, when checkpoints have cost at most schedule.overhead of the run time (the first call is due),
  /// or the last checkpoint, committed or failed, was schedule.seconds ago. Time that save waits for GPU work is not
  /// counted as cost. Also true when the job must end (should_exit), until a checkpoint has been committed; that commit
  /// is taken to the highest level that fits into the remaining time, due or not.
  [[nodiscard]] bool need_checkpoint();
  /// COLLECTIVE, one small all-reduce. True on all ranks, from then on, once the job must end: any rank got one of
  /// `exit.signals`, or `deadline` is so near that a last checkpoint would soon not fit. In a loop with
  /// need_checkpoint, call it after the checkpoint: it returns what the last need_checkpoint found, and the loop cannot
  /// end without a checkpoint of its last step. Without a need_checkpoint since the last should_exit, it checks by
  /// itself, and the next commit is the last.
  [[nodiscard]] bool should_exit();

  /// COLLECTIVE. Begins a checkpoint with a new commit id and a generation above all earlier ones. Waits while
  /// pipeline.max_pending commits are pending (or as pipeline.when_full says), and until a snapshot is sealed. Only
  /// rank 0's attributes are stored; info() returns them on every rank. The first create of a start that opened nothing
  /// surveys the stores. Throws invalid_argument (tag, attributes), bad_state, no_space, io, and a failure that ended
  /// the engine in the background.
  void create(std::string_view tag, const Attributes& attributes = {});
  /// COLLECTIVE. Begins an output: data for people and other programs, such as a plot, not state to restart from. It is
  /// saved, committed, protected and opened by its tag as a checkpoint is. open(latest) and open(Before) skip it; it
  /// does not count for any `keep` or `every` and replaces no checkpoint. Every output is flushed to the prefix, stays
  /// in the node-local stores until then, and is never removed from the prefix. Throws as create does.
  void create_output(std::string_view tag, const Attributes& attributes = {});
  /// Local, never throws; from any thread. Copies the region to the node-local store and computes its checksums; the
  /// memory may be reused when it returns, and must not change before. A large region may be copied by
  /// store.copy_threads threads, which end before it returns, do not call MPI and block signals. Region::stream says
  /// when host and GPU memory are read. With device.snapshot, GPU memory is only copied within the GPU.
  ///
  /// Names are UTF-8, 1 to 1024 bytes; `/` separates groups. No part is empty, `.` or `..`, no name is also a group of
  /// another, and `.kedge/` and `ranks/` are reserved. Fails, and makes commit fail on all ranks, with invalid_argument
  /// (a bad name, type, shape or memory), no_space, io or device_failed. When no checkpoint is being written, save
  /// returns bad_state and nothing else reports it.
  Status save(std::string_view name, const Region& region, const Placement& placement = {});
  /// Local, never throws; from any thread. For applications that write files instead of memory: returns a path on the
  /// node-local store, and commit stores the file written there as a region of this name. The path ends with `name`,
  /// whose directories exist. All files that a rank routes in one checkpoint are in one private directory, which commit
  /// and abandon remove with everything in it, as does the next start after a crash. A name that ends with '/' is a
  /// directory: everything written below it is stored, each file as a region, and empty directories too. Each part of a
  /// name has at most 255 bytes. Route each file once, and close it before commit. commit fails if the file, or the
  /// directory in all, exceeds `max_bytes`; 0 means no limit.
  Routed route_out(std::string_view name, std::uint64_t max_bytes = 0);
  /// COLLECTIVE. Seals the checkpoint on all ranks or on none. When it returns, the commit survives the death of any
  /// processes; with store.durable on block storage, also a power loss. With device.snapshot it may return at level
  /// snapshot: the commit is sealed in the background, which may still fail (level, wait). Starts protection and flush
  /// if they are due: in the background or, with pipeline.mode inline, before it returns. If these fail, the commit
  /// keeps its level and a warning says why; commit does not throw.
  ///
  /// Costs two votes of all ranks, and reading the routed files (in pieces of 1 MiB; each file is removed once it is
  /// stored, so the store needs space for the container and a second copy of the largest file). If the structure
  /// differs from the previous checkpoint's, also checks that the blocks of each global array cover it exactly once,
  /// and calls HDF5.
  ///
  /// Throws the first failure since create: that of a save or route_out; mismatch (the first hole or overlap of a
  /// global array; ranks disagree about a name's type, shape or placement); invalid_argument, not_found or io (a routed
  /// file that is a link or not a regular file, too large, missing, unreadable, or changed while it was read);
  /// no_space, with the bytes needed and free. Earlier commits are unchanged then, the checkpoint's space is free
  /// again, and the next one may succeed. After timeout or rank_failed the next start finds the commit complete or not
  /// at all.
  void commit();
  /// COLLECTIVE. Drops the checkpoint that create began, frees its space and removes its routed files. Throws bad_state
  /// if none was begun.
  void abandon();
  /// Local, from any thread, without communication; also after finalize. The level that the newest commit of this tag
  /// has reached, as far as this rank knows; none if it knows no such commit. A `snapshot` is not on the node-local
  /// stores yet (device.snapshot), which may still fail.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// Local, from any thread, without communication; also after finalize. This engine's counters on this rank.
  [[nodiscard]] Counters counters() const;

  /// COLLECTIVE. Returns when the newest commit of this tag has reached the level: waits for pending work, and protects
  /// or flushes the commit now if it was not due (redundancy.every, persistent.every) or failed. Call it where the
  /// program must not continue without the level, such as before removing its input. A start that has opened nothing
  /// surveys the stores first; only open brings a container to a rank whose store lacks it. Throws not_found (no such
  /// commit is kept), invalid_argument (a level that the options rule out), or the failure that prevents the level; the
  /// commit is then unchanged.
  void wait(std::string_view tag, Level level);
  /// COLLECTIVE. As wait, but waits at most `at_most` for work that is pending in the background; false on all ranks if
  /// any timed out, and the work continues. Stages that were not due run in the call, however long they take. Throws as
  /// wait does.
  [[nodiscard]] bool wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most);

  /// Called with nothing when a commit has reached the level, with the failure when it never will.
  using OnComplete = std::function<void(const std::optional<Failure>& failure)>;
  /// Local. Calls `callback` once, when the newest commit of this tag has reached the level or cannot reach it: its
  /// stage failed, the options rule the level out (invalid_argument), its flush was skipped, a newer commit replaced it
  /// in the stores, or the engine was finalized (not_found). The application's thread calls it at the end of the next
  /// create, commit, wait, open, close, need_checkpoint, should_exit or finalize that learns of it, on each rank
  /// independently. Collective calls in it throw bad_state; its exceptions are logged. It is not called if the engine
  /// is destroyed before, or fails. Throws not_found if the stores have no commit of this tag, bad_state if the engine
  /// was finalized (also in a callback during finalize) or is dead.
  void on_complete(std::string_view tag, Level level, OnComplete callback);

  /// Local, from any thread; never throws. Suspends this rank's background work, from its next piece on, until resume,
  /// to leave network and memory bandwidth to the application. The work resumes by itself when the application waits
  /// for it, and after at most a quarter of comm.timeout_s per commit, because other ranks depend on it. While paused,
  /// do not wait for a rank that may be in create.
  void pause() noexcept;
  void resume() noexcept;  ///< Local, from any thread; never throws. Resumes background work.

  /// COLLECTIVE. Pins the newest commit of this tag on the prefix: it stays there, regardless of persistent.keep, until
  /// unpin. Waits for the background work first. Throws not_found if no commit of this tag is persistent, io.
  void pin(std::string_view tag);
  void unpin(std::string_view tag);  ///< COLLECTIVE. Unpins the newest commit of this tag; waits and throws as pin.

  /// COLLECTIVE. Finds the selected checkpoint and makes every rank's container readable: moves containers from other
  /// processes, rebuilds lost ones from their redundancy sets, fetches the rest from the prefix, and protects the
  /// commit again. Call it once at the start, then load, then close. Waits for the background work first. open.verify
  /// determines how much is verified before it returns. Damaged and unreadable files count as missing; if the commit
  /// cannot be recovered without them, open uses the next older one that fits the selection and logs why.
  ///
  /// A commit that another number of ranks saved is opened where it lies: its files stay as and where they are, and
  /// lost containers are rebuilt; load_all and State load it, load and regions do not. open.other_ranks can refuse it.
  ///
  /// Returns the tag. With `latest`, nothing means that the run has no commit yet; with a Tag it may only mean that no
  /// commit has it (then the log names the newest). Throws unrecoverable, with each commit and the reason, if commits
  /// match but none can be recovered; not_found for a Source that matches nothing, and for a Before whose tag no commit
  /// has; io if the prefix cannot be listed.
  std::optional<Tag> open(const Selection& selection = latest, Newer newer = Newer::keep);
  /// Local. The regions of this rank's container in the open checkpoint, e.g. to allocate memory before load. Throws
  /// bad_state if no checkpoint is open.
  [[nodiscard]] std::vector<RegionInfo> regions() const;
  /// Local. Describes the checkpoint that is open, or was opened last. Throws bad_state if there was none.
  [[nodiscard]] CheckpointInfo info() const;
  /// Local, never throws; from any thread. Copies a region to host or GPU memory and verifies every byte; the copy is
  /// complete when it returns. Type and shape must be the saved ones (mismatch). On failure the memory's content is
  /// undefined, and close throws the failure on all ranks.
  Status load(std::string_view name, const MutableRegion& region);
  /// COLLECTIVE. Fills the memory of these wants, different ones on each rank (or none), from the open checkpoint,
  /// whichever ranks saved it and however many there were: blocks of global arrays, replicated regions, and regions of
  /// single ranks. Each stored block of 4 MiB that anybody wants is read and verified once, by one process, and passed
  /// on; a process needs open.buffer_bytes beside the wanted memory. Host memory only.
  ///
  /// Throws on all ranks alike: mismatch (type, shape or placement are not the saved ones; elements are wanted that
  /// nobody saved; several ranks saved a region of that name), not_found (nobody saved it), invalid_argument (memory of
  /// a device, or memory wanted twice), corrupt, io. The memory of all wants is undefined then. After corrupt,
  /// close throws it again, and the next open takes an older checkpoint or a rebuilt one.
  void load_all(std::span<const Want> wants);
  /// COLLECTIVE. For a list that is written where it is used.
  void load_all(std::initializer_list<Want> wants) { load_all(std::span(wants.begin(), wants.size())); }
  /// Local. The ranks that saved the open checkpoint and whose containers this process reads, ascending: this rank
  /// alone, or some, or none, where another number of ranks saved it (info().world_size). Together the processes have
  /// each rank once. Throws bad_state if no checkpoint is open.
  [[nodiscard]] std::vector<LogicalRank> logical_ranks() const;
  /// Local, never throws; from any thread. Extracts a routed file, in pieces that are verified before they are written,
  /// and returns its path, which ends with `name` and is valid until close. If the name ends with '/', extracts all
  /// files that this rank routed in that directory, and empty directories (which regions() does not list); the result
  /// is empty if there were none. Each call extracts again.
  Routed route_in(std::string_view name);
  /// COLLECTIVE. Closes the checkpoint, also if it throws, and throws the first failure of a load or route_in
  /// (not_found, mismatch, corrupt, io, no_space). Use loaded data only if close succeeds. With open.verify = loaded,
  /// verifies the rest of the container. After corrupt, the next open(latest), in this start or the next, rebuilds the
  /// checkpoint or uses an older one from the stores (store.keep) or the prefix.
  void close();

  /// COLLECTIVE. Calls create, save for every item, and commit. Some ranks may make these calls one by one instead,
  /// also in another language. Throws as these calls do, and, on all ranks, what functions of the State throw.
  void checkpoint(std::string_view tag, const State& state, const Attributes& attributes = {});
  /// COLLECTIVE. Calls open, load for every item and close, until close finds no damage. Some ranks may make these
  /// calls one by one instead. Returns the tag, or nothing if there is no checkpoint yet. Resizes variables to the
  /// saved size; any other difference (type, shape, members, the position in a global array if the item has one) is a
  /// mismatch.
  ///
  /// If another number of ranks saved the checkpoint, each variable gets what its Block says now: a block of the global
  /// array, or what is Replicated; a resizable variable whose block is a function gets an even share of the elements,
  /// and one with PerRank what its function makes of each rank's. mismatch, before anything is loaded, names all
  /// others.
  ///
  /// Reads each byte once: load verifies the loaded regions, and close verifies the rest, or, beyond 16 MiB, the worker
  /// does; with open.verify = headers, and of another run's checkpoint (Source), the rest is not verified. If damage is
  /// found, the checkpoint is rebuilt, or the next one that fits the selection is used, and all variables are loaded
  /// again, on all ranks alike. Older commits are kept until all ranks have verified theirs. After an error, which all
  /// ranks throw, the variables' content is undefined; the error says so if some were overwritten.
  std::optional<Tag> restore(const State& state, const Selection& selection = latest);

  /// COLLECTIVE. Waits for the background work, flushes the newest commit (unless persistent.every is 0 or
  /// store.on_exit is remove), and shuts the engine down as store.on_exit says; afterwards every call that
  /// communicates, saves or loads throws or returns bad_state. A failed flush is logged and not thrown. If the newest
  /// commit was a snapshot that could not be written to the stores, keeps the node-local files whatever store.on_exit
  /// says, and throws after shutting down; not if wait has thrown that already, or open with Newer::discard gave the
  /// snapshot up.
  void finalize();
  /// COLLECTIVE. As finalize, but waits at most `at_most` for background work, and 10 s more for a write that has
  /// begun. False on all ranks if any timed out, if the newest commit could not be flushed, or if it was a snapshot
  /// that is lost; the log says why. The newest commit then keeps its level, and the node-local files are kept,
  /// whatever store.on_exit says, for `kedge drain` or the next start; the stores' locks are released when the engine
  /// is destroyed. Work for which no time is left is not begun: 0 returns at once. Inline work is always completed.
  [[nodiscard]] bool finalize_for(std::chrono::duration<double> at_most);
  /// COLLECTIVE if all ranks call it: as finalize, but waits at most `at_most` for the others. For interpreters and
  /// programs that exit and cannot know whether the other ranks do. False, on this rank alone, if the others do not
  /// call it or make other calls: then destroy the engine. The others get timeout, or bad_state for different calls.
  [[nodiscard]] bool finalize_if_all_come(std::chrono::duration<double> at_most);

 private:
  friend struct engine::EngineEnvironment;  // tests create engines over other storage and clocks
  friend struct ForBindings;
  explicit Engine(std::unique_ptr<engine::EngineImpl> impl);
  std::unique_ptr<engine::EngineImpl> impl_;
};

}  // namespace kedge
