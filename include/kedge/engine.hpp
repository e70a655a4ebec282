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

namespace kedge {

class State;
struct ForBindings;

namespace engine {
class EngineImpl;
struct EngineEnvironment;
}  // namespace engine

/// Path of a file, or directory, routed through a checkpoint, and the call's status.
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
  LogicalRank logical_rank;                          ///< the one whose container this process loads
  RecoverySource source = RecoverySource::in_place;  ///< the costliest that any rank needed
  std::uint64_t total_bytes = 0;                     ///< container bytes of all ranks
  Attributes attributes;                             ///< as given to create
};

/// One run's checkpoint engine. How calls fail, and what holds for all of them, is in share/doc/contracts/calls.md.
///
/// Calls marked COLLECTIVE are made by all ranks in the same order, from one thread at a time. Each succeeds on all
/// ranks or throws Error with the same code on all. Ranks that make different calls get bad_state. Exceptions are
/// `timeout` (a rank did not come within comm.timeout_s) and `rank_failed` (a rank died), which may reach some ranks
/// where another returns. After either, and after `device_failed` and `busy` of a later start, the engine is dead:
/// every call that communicates, saves or loads returns or throws bad_state.
///
/// save, load, route_out and route_in are local and never throw. The engine remembers the first failure, and the commit
/// or close that ends the sequence throws it on every rank, so a Status may be ignored. Only a call outside of such a
/// sequence is reported by its own Status (bad_state) alone. These four and level may be called from several threads.
class Engine {
 public:
  /// COLLECTIVE. Starts the run's next incarnation: checks that all ranks have the same options, finds out which run
  /// this is and which ranks share a node, and takes over the run's node-local stores. Waits up to store.lock_timeout_s
  /// for processes of an earlier start that still use a store. No container is touched before all stores are locked.
  /// Makes a few small files on the prefix; reads no checkpoint data.
  ///
  /// Throws invalid_argument (a bad option; options that differ between ranks; a prefix that is not one filesystem;
  /// stores shared by failure domains; a message layer whose reductions give wrong results), mismatch (the checkpoints
  /// here are of several runs, of another input or another computation, or in stores that the prefix does not know),
  /// corrupt (checkpoints exist, but nothing says of which run), no_space, io or not_found (prefix or store cannot be
  /// used), busy (another start of this run is alive, or another engine of this process is at work on it).
  Engine(std::unique_ptr<Communicator> communicator, Options options);
  /// COLLECTIVE. Over all ranks of an MPI communicator, see kedge::mpi: `Engine engine(MPI_COMM_WORLD, options)` with
  /// kedge/mpi.hpp included.
  template <class Ranks>
  requires requires(const Ranks& ranks) { CommunicatorOf<Ranks>::make(ranks); }
  Engine(const Ranks& ranks, Options options) : Engine(CommunicatorOf<Ranks>::make(ranks), std::move(options)) {}
  /// Local: never communicates, safe after MPI_Finalize. Background work is cut short: a write that has begun is waited
  /// for, at most 10 s, and each commit keeps the level that it had; a commit that is still a snapshot is lost. Call
  /// finalize first to shut down in order. Where no error led here, a later engine of this process does not continue
  /// this one's run, unless open.chained is set.
  ~Engine();
  Engine(Engine&&) noexcept;             ///< Local.
  Engine& operator=(Engine&&) noexcept;  ///< Local. The engine that is replaced is destroyed.
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// COLLECTIVE, one small all-reduce. True on all ranks when a checkpoint is due, as rank 0 finds: at every
  /// schedule.every-th call; if that is 0, when checkpoints have cost at most schedule.overhead of the run time (the
  /// first call is due), or the last checkpoint, committed or failed, was schedule.seconds ago. Time that save waits
  /// for GPU work does not count as cost. Also true when the job is to end (should_exit), until a checkpoint has been
  /// committed since; that commit is taken to the highest level that fits into the time left, whether it is due there
  /// or not.
  [[nodiscard]] bool need_checkpoint();
  /// COLLECTIVE, one small all-reduce. True on all ranks once the job is to end, and from then on: one of
  /// `exit.signals` came to any rank, or `deadline` is so near that a last checkpoint would soon not fit. In a loop
  /// with need_checkpoint, call it after the checkpoint: it returns what the last need_checkpoint found, so that the
  /// loop does not end without the checkpoint of its last step. Called without a need_checkpoint since the last
  /// should_exit, it finds out itself, and the next commit is the last.
  [[nodiscard]] bool should_exit();

  /// COLLECTIVE. Begins a checkpoint: draws its commit id and a generation above all that were ever seen. Waits while
  /// pipeline.max_pending commits are on their way to a higher level (or as pipeline.when_full says), and until a
  /// snapshot is sealed. Only rank 0's attributes are stored; info() returns them on every rank. The first create of a
  /// start that opened nothing looks at the stores first. Throws invalid_argument (tag, attributes), bad_state,
  /// no_space, io, and what ended the engine in the background.
  void create(std::string_view tag, const Attributes& attributes = {});
  /// COLLECTIVE. Begins an output: data for people and other programs, such as a plot, not state to restart from. It is
  /// saved, committed, protected and read as a checkpoint is, by its own tag; open(latest) and open(Before) skip it, it
  /// counts in no `keep` and no `every` and replaces no checkpoint. Every output is flushed to the parallel filesystem,
  /// stays in the node-local stores until then, and is never removed from the parallel filesystem. Throws as create.
  void create_output(std::string_view tag, const Attributes& attributes = {});
  /// Local, never throws; from any thread. Copies the region to the node-local store and computes its checksums; the
  /// memory may be reused when it returns, and must not change before. A large region may be copied by
  /// store.copy_threads threads, which end before it returns, do not call MPI and block signals. Host memory is read at
  /// once, unless a stream is given; memory of an NVIDIA GPU, managed memory too, is recognized and read as
  /// Region::stream says. With device.snapshot, GPU memory is only copied within the GPU.
  ///
  /// Names are UTF-8, 1 to 1024 bytes; `/` separates groups. No part is empty, `.` or `..`, no name is also a group of
  /// another, and `.kedge/` and `ranks/` are reserved. The Status, and then commit on all ranks: invalid_argument (a
  /// bad name, type, shape or memory), no_space, io, device_failed. Outside of create and commit only the Status says
  /// that the call was refused (bad_state).
  Status save(std::string_view name, const Region& region, const Placement& placement = {});
  /// Local, never throws; from any thread. Returns a path on the node-local store to write a file of the application's
  /// own to; commit stores the file as a region of this name. The path ends with `name`, whose directories exist; all
  /// files that a rank routes in one checkpoint lie in one directory, which is this rank's alone, and which commit and
  /// abandon remove with everything in it, as does the next start of a job that died. A name that ends with '/' is a
  /// directory: everything written below it is stored, each file as a region, and empty directories too. Each part of a
  /// name has at most 255 bytes. Each file is routed once, and closed before commit. `max_bytes` is a bound that the
  /// application sets itself (of a directory: on all of it), which commit checks; 0 is none.
  Routed route_out(std::string_view name, std::uint64_t max_bytes = 0);
  /// COLLECTIVE. Seals the checkpoint on all ranks or on none. When it returns, the commit survives the death of any
  /// processes; with store.durable on block storage, also a power loss. With device.snapshot it may return at level
  /// snapshot: the commit is sealed in the background, and may still fail (level, wait). Protection and flush are
  /// started if they are due, in the background or, with pipeline.mode inline, before it returns; if they fail, the
  /// commit keeps its level, one warning says why, and commit does not throw.
  ///
  /// Costs two votes of all ranks, reading the routed files (in pieces of 1 MiB, each file removed when it is stored:
  /// the store needs room for the container and the largest file once more), and, where the structure is another than
  /// the previous checkpoint's, a check that the blocks of each global array cover it exactly once and calls of HDF5.
  ///
  /// Throws the first failure since create: that of a save or route_out; mismatch (the first hole or overlap of a
  /// global array; ranks that disagree about a name's type, shape or placement); invalid_argument, not_found or io (a
  /// routed file that is a link or not a regular file, above its bound, missing, unreadable, or changed while it was
  /// read); no_space, with what is needed and free. Earlier commits are unchanged then, the checkpoint's space is free
  /// again, and the next one may succeed. After timeout or rank_failed the commit is in doubt: the next start finds it
  /// whole or not at all.
  void commit();
  /// COLLECTIVE. Drops the checkpoint that create began, frees its space and removes its routed files; nothing else is
  /// lost. Throws bad_state if none was begun.
  void abandon();
  /// Local, from any thread, without communication; also after finalize. The level that the newest commit of this tag
  /// has reached, to this engine's knowledge; none if it knows of no such commit. `snapshot`: it is not on the
  /// node-local stores yet (device.snapshot), and may still fail.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// Local, from any thread, without communication; also after finalize. What this engine has done since it was
  /// created, to this rank's knowledge.
  [[nodiscard]] Counters counters() const;

  /// COLLECTIVE. Returns when the newest commit of this tag has reached the level: waits if that is already being done,
  /// and protects or flushes the commit now if it was not due yet (redundancy.every, persistent.every) or failed. Call
  /// it where the program must not go on without the level, such as before removing its input. In a start that has
  /// opened nothing it looks at the stores first; only open brings a container to a rank whose store lacks it. Throws
  /// not_found (no such commit is kept), invalid_argument (a level that the options rule out), or why the level cannot
  /// be reached: the commit is then unchanged.
  void wait(std::string_view tag, Level level);
  /// COLLECTIVE. As wait, but waits at most `at_most` for work that is already being done in the background; false on
  /// all ranks if any gave up, and the work continues. What was not due is done in the call, however long it takes.
  /// Throws as wait.
  [[nodiscard]] bool wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most);

  /// Called when a commit has reached the level (no failure) or never will (why).
  using OnComplete = std::function<void(const std::optional<Failure>& failure)>;
  /// Local. `callback` is called once, with nothing when the newest commit of this tag has reached the level, or with
  /// the failure when it cannot: its stage failed, the options rule the level out (invalid_argument), its flush was
  /// skipped, a newer commit replaced it in the stores, or the engine was finalized (not_found). It is called by the
  /// application's thread, at the end of the create, commit, wait, open, close, need_checkpoint, should_exit or
  /// finalize that finds this out, on each rank independently. Collective calls in it throw bad_state; what it throws
  /// is logged. Never called if the engine is destroyed before, or fails. Throws not_found if the stores have no commit
  /// of this tag, bad_state if the engine was finalized (also in a callback that finalize makes) or is dead.
  void on_complete(std::string_view tag, Level level, OnComplete callback);

  /// Local, from any thread; never throws. Suspends this rank's background work, from its next piece on, until resume,
  /// so that the application has network and memory bandwidth to itself. The work resumes by itself when the
  /// application waits for it, and after at most a quarter of comm.timeout_s per commit, because other ranks depend on
  /// it. While paused, do not wait for a rank that may be in create.
  void pause() noexcept;
  void resume() noexcept;  ///< Local, from any thread; never throws. Ends a pause.

  /// COLLECTIVE. A pinned commit stays on the parallel filesystem until it is unpinned, regardless of persistent.keep.
  /// Waits for the background work first. Throws not_found if no commit of this tag is persistent, io.
  void pin(std::string_view tag);
  void unpin(std::string_view tag);  ///< COLLECTIVE. The reverse of pin.

  /// COLLECTIVE. Finds the selected checkpoint and makes every rank's container readable: containers that other
  /// processes hold are moved, lost ones rebuilt by their redundancy sets, the rest fetched from the prefix, and the
  /// commit is protected again. Waits for the background work first. How much is read and verified before it returns
  /// says open.verify; files that are damaged, or cannot be opened or read, count as missing, and if the commit cannot
  /// be recovered then, the next older one that fits the selection is used, and the log says why. Call it once at the
  /// start, then load, then close.
  ///
  /// Returns the tag; nothing if the run has no commit yet or none matches (then the log names the newest). Never
  /// starts from zero silently: throws unrecoverable if commits that match exist and none can be recovered, with each
  /// and why (also if they were saved by another number of ranks); not_found for a Source that matches nothing, and for
  /// a Before whose tag no commit has; io if the prefix cannot be listed.
  std::optional<Tag> open(const Selection& selection = latest, Newer newer = Newer::keep);
  /// Local: regions of this rank's container in the open checkpoint, before anything is loaded. Throws bad_state if
  /// none is open.
  [[nodiscard]] std::vector<RegionInfo> regions() const;
  /// Local: the checkpoint that is open, or was opened last. Throws bad_state if there was none.
  [[nodiscard]] CheckpointInfo info() const;
  /// Local, never throws; from any thread. Copies a region out and checks every byte, also into GPU memory; the copy is
  /// complete when it returns. Type and shape must be the saved ones (mismatch). On failure the memory's content is
  /// undefined.
  Status load(std::string_view name, const MutableRegion& region);
  /// Local, never throws; from any thread. Extracts a routed file, in pieces that are checked before they are written,
  /// and returns its path, which ends with `name` and is valid until close; with a name that ends with '/', all that
  /// this rank routed in that directory, empty directories too (which regions() does not list); the directory is empty
  /// if there was nothing. Asked for twice, it is extracted twice.
  Routed route_in(std::string_view name);
  /// COLLECTIVE. Releases what open acquired, also when it throws, and throws the first failure since then: that of a
  /// load or route_in (not_found, mismatch, corrupt, io, no_space). With open.verify = loaded, reads what was not
  /// loaded. After corrupt the next open(latest), in this start or the next, rebuilds the checkpoint or uses an older
  /// one, in the stores (store.keep) or on the prefix.
  void close();

  /// COLLECTIVE. Calls create, save for every item, commit. Some ranks may make these calls one by one, in another
  /// language too. Throws as they do, and, on all ranks, what functions of the State throw.
  void checkpoint(std::string_view tag, const State& state, const Attributes& attributes = {});
  /// COLLECTIVE. Calls open, load for every item and close, until close finds no damage. Some ranks may make these
  /// calls one by one. Returns the tag, or nothing if there is none yet. Variables are resized to what was saved;
  /// whatever else differs (type, shape, members, the position in a global array if the item gives one) is a mismatch.
  ///
  /// Each byte is read once: what is loaded is checked while it is loaded; close reads the rest, or, of more than 16
  /// MiB, the background thread where there is one; open.verify = headers leaves the rest unread, as does another run's
  /// checkpoint (Source). If damage shows then, the checkpoint is rebuilt, or the next that fits the selection is used,
  /// and all variables are loaded again, on all ranks alike. No older commit is given up before all ranks have found
  /// theirs whole. After an error, thrown on all ranks, the variables' content is undefined, and the error says so if
  /// some were overwritten.
  std::optional<Tag> restore(const State& state, const Selection& selection = latest);

  /// COLLECTIVE. Waits for the background work, flushes the newest commit (unless persistent.every is 0 or
  /// store.on_exit is remove), and shuts the engine down as store.on_exit says; afterwards every call that
  /// communicates, saves or loads throws or returns bad_state. A flush that fails is logged and does not throw. Then
  /// throws, and keeps the node-local files whatever store.on_exit says, if the newest commit was a snapshot that could
  /// not be written to the stores; not if wait has thrown that already, or open was told to discard what is newer.
  void finalize();
  /// COLLECTIVE. As finalize, but waits at most `at_most` for background work, and 10 s more for a write that has
  /// begun. False on all ranks if any gave up, if the newest commit could not be flushed, or if it was a snapshot that
  /// is lost; the log says why. The newest commit then keeps the level that it has, and the node-local files are kept,
  /// whatever store.on_exit says, for `kedge drain` or the next start; the stores' locks are released when the engine
  /// is destroyed. What has no time left is not begun: 0 gives up at once unless the commit is where it belongs
  /// already. Where work is done inline, nothing is given up.
  [[nodiscard]] bool finalize_for(std::chrono::duration<double> at_most);
  /// COLLECTIVE, if all ranks come: as finalize(), but waits at most so long for the others. For interpreters and
  /// programs that exit and cannot know whether they do. False, on this rank alone, if they do not come, or make other
  /// calls: then destroy the engine. To the others it is a rank that does not answer (timeout), or one in another call
  /// (bad_state).
  [[nodiscard]] bool finalize_if_all_come(std::chrono::duration<double> at_most);

 private:
  friend struct engine::EngineEnvironment;  // tests create engines over other storage and clocks
  friend struct ForBindings;
  explicit Engine(std::unique_ptr<engine::EngineImpl> impl);
  std::unique_ptr<engine::EngineImpl> impl_;
};

}  // namespace kedge
